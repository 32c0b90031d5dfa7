package operator

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

func allowGadget(context.Context, *gadget, *gadget, *kube.Client) error { return nil }

func leaveGadget(context.Context, *gadget) {}

type foreignSpec struct{}

func (foreignSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Foreign", Foreign: true}
}

// What is wrong with webhooks is an error before any request. It names the webhook and the way out.
func TestWebhooksThatCannotBeServed(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, each := range map[string]struct {
		args  []string
		parts []Part
		want  string
	}{
		"no function":   {nil, []Part{Validate[gadget](nil)}, "validate.gadgets.example.com: its function is nil"},
		"no defaults":   {nil, []Part{Default[gadget](nil)}, "default.gadgets.example.com: its function is nil"},
		"twice":         {nil, []Part{Validate(allowGadget), Validate(allowGadget)}, "the webhook validate.gadgets.example.com is declared twice: make one function of the two"},
		"twice, inside": {nil, []Part{OnEveryReplica(Default(leaveGadget)), Default(leaveGadget)}, "the webhook default.gadgets.example.com is declared twice"},
		"foreign": {nil, []Part{Validate(func(context.Context, *kube.CustomResource[foreignSpec, kube.None], *kube.CustomResource[foreignSpec, kube.None], *kube.Client) error {
			return nil
		})}, "the Definition is Foreign"},
		"permission":      {nil, []Part{Validate(allowGadget, controller.Permission{})}, "a controller.Permission is empty"},
		"address":         {[]string{"--webhooks", "9443"}, []Part{Validate(allowGadget)}, "the address is not valid: write it as :8080"},
		"taken port":      {[]string{"--webhooks", taken.Addr().String()}, []Part{Validate(allowGadget)}, "listen on the address that --webhooks gives: another program has the port"},
		"one of two":      {[]string{"--webhooks", "127.0.0.1:0", "--webhook-cert", "x"}, []Part{Validate(allowGadget)}, "--webhook-cert and --webhook-key belong together"},
		"without address": {[]string{"--webhook-cert", "x", "--webhook-key", "y"}, []Part{Validate(allowGadget)}, "are for --webhooks: give it an address, such as :9443"},
		"no files":        {[]string{"--webhooks", "127.0.0.1:0", "--webhook-cert", "absent.crt", "--webhook-key", "absent.key"}, []Part{Validate(allowGadget)}, "open absent.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := call(append([]string{"run", "--kubeconfig", nowhere(t)}, each.args...), each.parts...)
			if status == 0 || !strings.Contains(stderr, each.want) {
				t.Errorf("status %d, %s\nwant %s", status, stderr, each.want)
			}
		})
	}
}

// A program whose webhooks are not served says so, unless its user has said it.
func TestWebhooksThatAreNotServed(t *testing.T) {
	t.Parallel()
	const warning = `the webhooks of the program are not served: give --webhooks`
	done := part(func(context.Context) error { return nil })
	for _, each := range []struct {
		args  []string
		parts []Part
		want  string
	}{
		{nil, []Part{Validate(allowGadget), failingPart()}, warning},
		{[]string{"--webhooks", ""}, []Part{Validate(allowGadget), failingPart()}, ""},
		{[]string{"--webhooks", ":9443"}, []Part{done}, "the flag --webhooks has no effect: the program has no part operator.Validate, operator.Default or operator.Convert"},
	} {
		_, _, stderr := call(append([]string{"run", "--kubeconfig", nowhere(t)}, each.args...), each.parts...)
		if each.want == "" && strings.Contains(stderr, "webhook") || !strings.Contains(stderr, each.want) {
			t.Errorf("%q: %s\nwant %q", each.args, stderr, each.want)
		}
	}
}

// failingPart returns a part that ends the program.
func failingPart() Part {
	return part(func(context.Context) error { return errors.New("the part has failed") })
}

// Regression: a probe that came before the webhooks were served said that the replica was ready, and read fields while they
// were set.
func TestReplicaIsNotReadyBeforeItServesWebhooks(t *testing.T) {
	t.Parallel()
	w, err := openServedWebhooks(t.Context(), webhookSettings{flags: webhookFlags{address: "127.0.0.1:0"}, program: "web", namespace: "shop", log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	if reasons := w.unreadyReasons(); len(reasons) != 1 || !strings.Contains(reasons[0], "not served yet") {
		t.Errorf("the reasons are %q", reasons)
	}
}
