package certificates_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/yaretest"
)

// server returns the API server that all tests share.
func server() certificates.Server {
	return certificates.Server{
		Eventually: yaretest.Eventually,
		Connect: func(t *testing.T, rule rbacv1.PolicyRule) (admin, account *kube.Client, namespace string) {
			t.Helper()
			cluster := yaretest.Shared(t)
			namespace = cluster.Namespace(t)
			a := cluster.ServiceAccount(t, namespace)
			a.Allow(t, namespace, rule)
			return cluster.Client(t), a.Client(t), namespace
		},
	}
}

func TestStartOnAServer(t *testing.T)      { certificates.CheckStartOnAServer(t, server()) }
func TestRepairOnAServer(t *testing.T)     { certificates.CheckRepairOnAServer(t, server()) }
func TestServerCallsAWebhook(t *testing.T) { certificates.CheckServerCallsAWebhook(t, server()) }
func TestVerbs(t *testing.T)               { certificates.CheckVerbs(t, server()) }
