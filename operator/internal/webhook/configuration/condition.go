package configuration

// The expressions below must never fail, because the API server then refuses the request. So they look at no field that
// may be absent: object is null in a deletion, oldObject is null in a creation, and the objects of some subresources
// have no metadata. They compare the members of objects one by one, because status and metadata are left out.

// changed is true unless an update changes nothing outside of metadata and status. Example:
// {"spec":{"a":1},"status":{}} has not changed from {"spec":{"a":1}}, and {"spec":{"a":1},"data":{}} has, because of
// data.
const changed = `object == null || oldObject == null || ` +
	`object.exists(k, k != "metadata" && k != "status" && (!(k in oldObject) || object[k] != oldObject[k])) || ` +
	`oldObject.exists(k, k != "metadata" && k != "status" && !(k in object))`

// metadataChanges is true if labels or annotations have changed. It follows [changed], and so both objects are there.
const metadataChanges = ` || ["labels", "annotations"].exists(k, ` +
	`(has(object.metadata) && k in object.metadata ? object.metadata[k] : {}) != ` +
	`(has(oldObject.metadata) && k in oldObject.metadata ? oldObject.metadata[k] : {}))`

// notDeleted is true for an object that is not being deleted.
const notDeleted = `object == null || !has(object.metadata) || !has(object.metadata.deletionTimestamp)`
