// Package history records what an administrator sees of a run of an exploration, and judges it.
//
// A [Recorder] watches every resource of the run's namespaces outside of the program's connection,
// and keeps every version of every object. [History] is the result. [NewMasks] finds what differs
// between runs that should be equal, [Masks.Compare] compares two states of such runs, and
// [Destroyed] finds what a run has destroyed on its way.
//
// # What is compared
//
// The fields of an object that the operator wrote are compared: the fields that its field managers own, by
// managedFields, and the whole status of a custom object. The built-in controllers and the users (see
// [Options]) are not the operator. All other field managers are the operator. Therefore the objects that the
// built-in controllers make, such as ReplicaSets and the Pods of a Job, take no part. Events, Leases, Jobs
// that have finished, and the PersistentVolumeClaims of StatefulSets take no part either.
//
// # What runs have for themselves
//
// Two runs have different namespaces, uids, generated names, times, IP addresses, node ports and
// resource versions. These are replaced by what they stand for, also within texts, before anything is
// compared.
package history
