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
// API servers verify certificates by their own clocks. Therefore the time is that of the API server, from the header
// Date of its answers: see serverClock.
package certificates
