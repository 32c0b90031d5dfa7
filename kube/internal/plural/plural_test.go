package plural

import "testing"

// The kinds are those whose plurals differ from what simple rules of English give. The module
// lab/controllergen compares many more kinds with controller-gen.
func TestPlurals(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"WebApp": "webapps", "Policy": "policies", "Gateway": "gateways", "Ingress": "ingresses", "Endpoints": "endpoints",
		"Proxy": "proxies", "Box": "boxes", "Batch": "batches", "Wish": "wishes", "Key": "keys", "Book": "books", "Y": "ys",
		"Redis": "redis", "Postgres": "postgres", "Kubernetes": "kubernetes", "Alias": "aliases", "DNSAlias": "dnsaliases",
		"PageIndex": "pageindices", "Index": "indices", "Quota": "quotas", "Stadium": "stadiums", "Medium": "media", "WebMedia": "webmedia",
		"WebSeries": "webseries", "Gatehouse": "gatehouses", "Snowman": "snowmen", "Nonhuman": "nonhumans", "Human": "humans",
		"HTTPRoute": "httproutes", "Echo": "echoes", "Repo": "repoes", "Chaos": "chaos", "Status": "statuses", "CDS": "cdses",
		"Prometheus": "prometheuses", "Analysis": "analyses", "Quiz": "quizzes", "Leaf": "leaves", "Metadata": "metadata",
	} {
		if got := Of(kind); got != want {
			t.Errorf("the plural of %s is %s, want %s", kind, got, want)
		}
	}
}
