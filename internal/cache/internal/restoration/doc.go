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
//	proof                an observation that only a restoration explains
//	doubt                the state of a store is not known, and reads of it are live
//	restoration count    how many restorations the streams of a program have found. Each store has a count
//	                     of its own. The store is in doubt while its count is the lower one
//
// # Example
//
// A program has a stream of Deployments and a stream of Pods. The server is at version 100, and so are both
// stores.
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
//   - The stream lists anew for whatever reason. The list has version 107. The store is at 110, and 120 is
//     expected.
//
// If nothing happens on the server, there is no such observation. So the stream lists anew too if a watch
// that was opened after the answer has lasted for a minute and has not reached version 120. Package watch
// lists anew if a silent watch finds that the server has a lower version than 110.
//
// After a proof, the store of Deployments is in doubt, and the stream lists anew at once. The list at
// version 107 is complete a moment later:
//
//   - The restoration count becomes 1. The store of Deployments has count 1 and is right again.
//   - The store of Pods is at version 115, which is newer than 107. It keeps count 0. So it is in doubt, and
//     its stream lists anew. After its list the store has count 1.
//   - A store at version 104 would get count 1 at once, because it shows nothing that was lost.
//   - No version is expected any more in this cluster.
//
// The package makes no requests and knows no stores. A [Recorder] receives what a stream does, and a
// [Detector] what the program's requests are answered with.
package restoration
