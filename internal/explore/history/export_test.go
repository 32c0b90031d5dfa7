package history

var RecordWith = record
