package operator_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/internal/calls"
	"github.com/yare-go/yare/operator/webhook"
)

func allowGadget(context.Context, *operator.Gadget, *operator.Gadget, *kube.Client) error { return nil }

func leaveGadget(context.Context, *operator.Gadget) {}

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
		parts []operator.Part
		want  string
	}{
		"no function":   {nil, []operator.Part{webhook.Validate[operator.Gadget](nil)}, "validate.gadgets.example.com: its function is nil"},
		"no defaults":   {nil, []operator.Part{webhook.Default[operator.Gadget](nil)}, "default.gadgets.example.com: its function is nil"},
		"twice":         {nil, []operator.Part{webhook.Validate(allowGadget), webhook.Validate(allowGadget)}, "the webhook validate.gadgets.example.com is declared twice: make one function of the two"},
		"twice, inside": {nil, []operator.Part{operator.OnEveryReplica(webhook.Default(leaveGadget)), webhook.Default(leaveGadget)}, "the webhook default.gadgets.example.com is declared twice"},
		"foreign": {nil, []operator.Part{webhook.Validate(func(context.Context, *kube.CustomResource[foreignSpec, kube.None], *kube.CustomResource[foreignSpec, kube.None], *kube.Client) error {
			return nil
		})}, "the Definition is Foreign"},
		"permission":      {nil, []operator.Part{webhook.Validate(allowGadget, controller.Permission{})}, "a controller.Permission is empty"},
		"address":         {[]string{"--webhooks", "9443"}, []operator.Part{webhook.Validate(allowGadget)}, "the address is not valid: write it as :8080"},
		"taken port":      {[]string{"--webhooks", taken.Addr().String()}, []operator.Part{webhook.Validate(allowGadget)}, "listen on the address that --webhooks gives: another program has the port"},
		"one of two":      {[]string{"--webhooks", "127.0.0.1:0", "--webhook-cert", "x"}, []operator.Part{webhook.Validate(allowGadget)}, "--webhook-cert and --webhook-key belong together"},
		"without address": {[]string{"--webhook-cert", "x", "--webhook-key", "y"}, []operator.Part{webhook.Validate(allowGadget)}, "are for --webhooks: give it an address, such as :9443"},
		"no files":        {[]string{"--webhooks", "127.0.0.1:0", "--webhook-cert", "absent.crt", "--webhook-key", "absent.key"}, []operator.Part{webhook.Validate(allowGadget)}, "open absent.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, stderr := operator.Call(append([]string{"run", "--kubeconfig", operator.Nowhere(t)}, each.args...), each.parts...)
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
	done := operator.PartOf(func(context.Context) error { return nil })
	for _, each := range []struct {
		args  []string
		parts []operator.Part
		want  string
	}{
		{nil, []operator.Part{webhook.Validate(allowGadget), failingPart()}, warning},
		{[]string{"--webhooks", ""}, []operator.Part{webhook.Validate(allowGadget), failingPart()}, ""},
		{[]string{"--webhooks", ":9443"}, []operator.Part{done}, `the flag --webhooks has no effect, because the program has no part that brings it","do":"import github.com/yare-go/yare/operator/webhook and add webhook.Validate to its parts`},
	} {
		_, _, stderr := operator.Call(append([]string{"run", "--kubeconfig", operator.Nowhere(t)}, each.args...), each.parts...)
		if each.want == "" && strings.Contains(stderr, "webhook") || !strings.Contains(stderr, each.want) {
			t.Errorf("%q: %s\nwant %q", each.args, stderr, each.want)
		}
	}
}

// failingPart returns a part that ends the program.
func failingPart() operator.Part {
	return operator.PartOf(func(context.Context) error { return errors.New("the part has failed") })
}

// Regression: a probe that came before the webhooks were served said that the replica was ready, and read fields while they
// were set.
func TestReplicaIsNotReadyBeforeItServesWebhooks(t *testing.T) {
	t.Parallel()
	f := calls.New()
	d, err := f.Declare(&feature.Program{Name: "web", Command: "run", Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range d.Flags {
		if flag.Name == "webhooks" {
			err = flag.Set("127.0.0.1:0")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.End)
	if reasons := f.UnreadyReasons(); len(reasons) != 1 || !strings.Contains(reasons[0], "not served yet") {
		t.Errorf("the reasons are %q", reasons)
	}
}
