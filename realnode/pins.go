//go:build pins

// Nothing here is ever compiled. k8s.io/kubernetes requires its staging modules
// at v0.0.0, a version that exists only through the replace directives of its own
// repository. This module has no replace directives, because `go install
// module@version` refuses them; it names every staging module at its published
// version instead. Four of them provide no package that we build, and `go mod tidy`
// would drop them from go.mod were they not imported here.

package main

import (
	_ "k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/code-generator"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
)
