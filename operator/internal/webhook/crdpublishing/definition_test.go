package crdpublishing

import (
	"context"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
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
