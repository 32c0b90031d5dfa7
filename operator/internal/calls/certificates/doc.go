// Package certificates makes, keeps and rotates the certificates with which an operator serves webhooks.
//
// One Secret holds the state of all replicas: the certificates of the CAs, the key of the newest CA, and the cross
// certificates. Each replica makes its serving certificate in memory. The certificates of the CAs are the bundle,
// by which API servers verify the replicas.
//
// # Rotation
//
// A rotation is one write to the Secret. The write adds a CA and a certificate of the new CA that the old CA has
// signed (a cross certificate), and drops the key of the old CA. Replicas present the cross certificates. So an API
// server with the old bundle accepts replicas that have the new CA, and an API server with the new bundle accepts
// replicas that have the old CA. Nobody waits for anybody. An example, with the days of the CAs A, B and C:
//
//	day   Secret: CAs, key, cross certificates       a replica presents            a bundle may be
//	  0   A          key of A                        leaf by A                     A
//	180   B, A       key of B   B by A               leaf by B, B by A             A, or B with A
//	360   C, B, A    key of C   C by B, B by A       leaf by C, C by B, B by A     A, or B with A, or all
//	365   A has expired, and stays in the bundle until the next write that adds a CA
//	540   D, C, B    key of D   D by C, C by B       leaf by D, D by C, C by B     B with A, or newer
//
// # Repair
//
// A replica compares the Secret with its memory whenever the Secret changes, and writes the union:
//
//   - The Secret is gone, empty or unreadable, or it is older than the memory (a restored backup): the memory comes
//     back. The Deployment of the installation owns a Secret that a replica makes, and a Deployment that is gone gets none:
//     whoever removes an installation removes the Secret while the program runs.
//   - The Secret knows the newest CA of the memory: the memory takes over the Secret. If the newest CA of the Secret
//     has signed that of the memory, the Secret is a restored backup to which another replica has added what is
//     published, and the memory comes back.
//   - Neither knows the newest CA of the other: another replica has begun anew. The CA of the Secret becomes the
//     newest one, and the CA of the memory signs it. That is a rotation, with a CA that exists already.
//   - Nobody has a CA that can sign: a replica makes one. Valid CAs whose key is lost stay in the bundle.
//
// A write names the uid and the resourceVersion of the Secret, or a version that no object has. So one of several
// replicas succeeds, and the others read what it has written.
//
// # Time
//
// Each replica decides by its own clock, and API servers verify certificates by theirs. No call fails while no two of
// these clocks differ by more than 30 days: a certificate begins 35 days before its creation, and a serving certificate
// is valid for 40 more days when it gets a successor. An example, in which the clock of the replica P is 30 days ahead
// of all others:
//
//	day   by P   what happens                                      valid, by the other clocks
//	150   180    P makes the CA B, which A signs                   B from day 145
//	150   180    P makes a leaf by B                               the leaf from day 145 to day 250
//	150   180    others see that B is valid, and make leaves by B  their leaves from day 115 to day 220
//	180   210    P makes its next leaf                             the leaf from day 175 to day 280
//	330   360    P makes the CA C                                  C from day 325
//
// The others make no CA on day 180, because B is not due for a successor by their clocks.
//
// If the clocks of two replicas differ by more than 35 days, a CA in the Secret may not be valid yet by one of them.
// Then this replica makes a CA that is valid by both clocks. If the clocks differ by more than half a year, the
// replicas do not agree. Their writes are limited, and the log has the reason.
package certificates
