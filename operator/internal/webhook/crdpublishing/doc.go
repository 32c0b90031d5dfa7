// Package crdpublishing keeps the field spec.conversion of the CustomResourceDefinitions whose objects a program
// converts. API servers find the program by that field.
//
// Each replica publishes, also a standby: the start of a leader can need conversions. All replicas apply the whole of
// spec.conversion under one field manager, and no other field. So a CustomResourceDefinition that somebody applies
// without a bundle keeps its bundle. If somebody removes or replaces the field, it is right again within 10 seconds.
//
// Once no object needs a conversion, and no managedFields have an old version, the command migrate gives up the field
// for the program: see [GiveUp]. A later release without a converter could not be applied otherwise.
//
// The conversion belongs to the Service that the field names. A program of another Service does not write the field
// while the Namespace of that Service exists. For example, the programs shop/webapp and test/webapp are installed, and
// the field names shop/webapp:
//
//	the Namespace shop   test/webapp
//	exists               logs that, and does not write
//	is gone              writes the field, with its own Service
//
// The command uninstall of shop/webapp sets the annotation [SuccessorAnnotation] to test/webapp. Then test/webapp
// writes the field too, with its own Service and bundle, although the Namespace shop exists.
package crdpublishing
