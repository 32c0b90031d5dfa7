module github.com/yare-go/yare/lab/kine

go 1.26.0

require (
	github.com/k3s-io/kine v0.17.5
	github.com/yare-go/yare v0.0.0
)

replace github.com/yare-go/yare => ../..
