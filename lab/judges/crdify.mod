module github.com/yare-go/yare/lab/judges

go 1.26.0

require sigs.k8s.io/crdify v0.5.0
