// Package restoration finds out that a server was restored from a backup. The package also records which
// stores are in doubt because of the restoration.
//
// By a restoration the server loses its newest changes, and its resource versions go back. No API server
// reports a restoration. A resumed watch is silent until the server has reached the version that the watch
// names. So a store can hold what the server has lost, for as long as nobody lists anew.
//
// # Words
//
//	restoration          the server has the state of a backup again
//	expected version     a version that the server has answered a request with, and that a stream has not
//	                     reached yet. The stream has to show the object at this version
//	contradiction        an observation of one stream that does not fit an answer of the server
//	proof                an observation that only a restoration explains: the first contradiction of a stream, or
//	                     a list with a lower version
//	doubt                the state of a store is not known, and reads of it are live
//	scope                the streams that one restoration concerns: see the type scope
//
// # Example
//
// A program has a stream of Deployments and a stream of Pods. It also has a stream of Certificates, which are of a
// foreign group. The server is at version 100, and so are the stores.
//
//	105  an administrator saves a backup
//	110  somebody scales the Deployment web. The store of Deployments is at 110
//	115  a Pod is created. The store of Pods is at 115
//	120  the program creates the Deployment api. The answer has version 120, which the stream of
//	     Deployments is expected to show. Its connection breaks before it does
//	105  the server is restored: web has its old scale, the Pod and api do not exist
//
// Each of these observations of the stream of Deployments is a proof:
//
//   - The watch shows another object at version 121. Changes come in the order of their versions, and
//     api at 120 did not come.
//   - The program reads web. The answer has version 103, and the store shows web at version 110.
//   - A probe of package follow finds that the server has lost the newest change of the stream.
//   - The stream lists anew for whatever reason. The list has version 107. The store is at 110, and 120 is
//     expected.
//
// If nothing happens on the server, there is no such observation. So the stream lists anew too if a watch
// that was opened after the answer has lasted for a minute and has not reached version 120. That is no proof, because a
// watch that lags explains it too. The list decides.
//
// After a proof at 10:00:00:
//
//	10:00:00  the stores of Deployments and Pods are in doubt, whatever their versions. The server may have
//	          passed version 115 meanwhile, and have assigned it to something else. No version is expected
//	          any more. What the requests of the program were answered with does not count any more
//	10:00:00  the stream of Deployments lists. Its store is right when the list is complete
//	10:00:37  the stream of Pods lists. The time is random within a minute, because the server has just come back
//	10:00:41  the stream of Certificates is probed by a list of one object. An aggregated API server may serve
//	          the group, with resource versions of its own. If the probe finds a loss, that is a proof in the
//	          group of the Certificates, and only its streams are listed
//
// A proof by the stream of Certificates is no proof about Deployments and Pods. They are probed.
//
// Some servers answer from several caches of their own, and contradict themselves all the time. Therefore only the
// first contradiction of a stream is a proof. A later one leads to a list of its stream, at growing intervals: see
// spacedCounter. If that list has a lower version, that is a proof.
//
// The package makes no requests and knows no stores. A [Recorder] receives what a stream does, and a
// [Detector] what the program's requests are answered with.
package restoration
