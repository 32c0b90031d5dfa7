module github.com/yare-go/yare/lab/judges

go 1.26.0

require github.com/cloudflare/pint v0.87.0
