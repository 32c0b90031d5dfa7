// Package twins holds wrong operators, each beside a twin that is right. An exploration must find
// what is wrong with the former, and must find nothing in the latter.
//
// Some are mistakes that operators are known to make. Others are published bugs of public operators,
// reduced to their cause and written anew. All of them reconcile one kind, [Site], and differ from
// their twins in the mistake only. ConfigMaps stand for whatever an operator makes, such as volumes
// and workloads, because the mistakes do not depend on kinds.
package twins
