// Package values finds other values for the fields of a custom resource. [Transitions] derives them from the schema
// of the kind, from a sample, and from the [Options] of the author.
//
// For example, a schema has an integer spec.replicas with the minimum 1 and the maximum 5, and the sample has 2.
// The values of the field are absent, minimum (1), maximum (5) and other (3). A transition leads from one value to
// another, by the objects that the user applies:
//
//	spec.replicas: sample -> minimum     {"spec": {"replicas": 1}}
//	spec.replicas: minimum -> maximum    {"spec": {"replicas": 1}}, {"spec": {"replicas": 5}}
//
// A string without an enumeration and without a pattern becomes another string: see [OtherText]. A string that the
// sample lacks, or that has a pattern, is opaque: only the options and a second sample have values for it. The values
// are candidates. Rules in CEL, webhooks and admission can refuse them, which [DryRun] reports.
package values
