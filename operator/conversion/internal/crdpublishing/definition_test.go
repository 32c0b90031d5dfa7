package crdpublishing

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

// definitionHandler is an API server with one CustomResourceDefinition. It counts the applies.
type definitionHandler struct {
	definition string
	applies    *int
}

func (h definitionHandler) Do(_ context.Context, r *wire.Request) (*wire.Response, error) {
	if r.Verb.IsWrite() {
		*h.applies++
	}
	if r.Verb == wire.VerbList {
		return &wire.Response{Body: []byte(`{"metadata":{"resourceVersion":"5"},"items":[` + h.definition + `]}`)}, nil
	}
	return &wire.Response{Body: []byte(h.definition)}, nil
}

// The command migrate of a program that serves v2 alone once kept the conversion of a definition whose only version is v2.
func TestProgramWithOneVersionGivesUpTheConversionOfOneVersion(t *testing.T) {
	t.Parallel()
	const definition = `{"metadata":{"name":"lamps.example.com","uid":"1","resourceVersion":"5","managedFields":[{"manager":"lamps-conversion","operation":"Apply","fieldsV1":{"f:spec":{"f:conversion":{}}}}]},
		"spec":{"versions":[{"name":"v2","served":true,"storage":true}],"conversion":{"strategy":"Webhook"}},"status":{"storedVersions":["v2"]}}`
	for servesOne, want := range map[bool]int{true: 1, false: 0} {
		applies := 0
		client := kube.NewClientFromHandler(definitionHandler{definition, &applies}).WithFieldManager("lamps-conversion")
		hadConversion, err := GiveUp(t.Context(), client, "lamps.example.com", servesOne)
		if err != nil || hadConversion != servesOne || applies != want {
			t.Errorf("one version is %t: the conversion was given up: %t with %d applies, %v", servesOne, hadConversion, applies, err)
		}
	}
}

// The log of an installation beside the one that converts once had an error for ever, and its metric made an alert fire.
func TestConversionOfAnotherInstallationIsNoError(t *testing.T) {
	t.Parallel()
	const definition = `{"metadata":{"name":"lamps.example.com","uid":"1","resourceVersion":"5"},
		"spec":{"versions":[{"name":"v1","served":true},{"name":"v2","served":true,"storage":true}],"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"shop","name":"lamps"}}}}}}`
	applies := 0
	client := kube.NewClientFromHandler(definitionHandler{definition, &applies})
	var log bytes.Buffer
	config := Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Target: configuration.Target{ServiceNamespace: "test", ServiceName: "lamps"}}
	k := newKeeper(config, newConvertedDefinition("lamps.example.com", client))
	k.object.NeedsRead = true
	err := k.correct(t.Context())
	if err == nil || applies > 0 || !k.isElsewhere.Load() {
		t.Errorf("%d applies, %v, elsewhere: %t", applies, err, k.isElsewhere.Load())
	}
	k.logProblem(err)
	if text := log.String(); !strings.Contains(text, "level=INFO") || !strings.Contains(text, "another installation converts the objects of a kind") {
		t.Errorf("the log is %q", text)
	}
}
