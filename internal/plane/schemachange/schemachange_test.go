package schemachange

import (
	"encoding/json"
	"testing"
)

func TestFurtherFields(t *testing.T) {
	t.Parallel()
	const former = `{"type":"object","properties":{"spec":{"type":"object","properties":{
		"size":{"type":"integer"},
		"hosts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}},
		"labels":{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}},
		"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}`
	for present, want := range map[string]bool{
		former: false,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"string","maxLength":3}}}}}`:                                              false,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"colour":{"type":"string"}}}}}`:                                                          true,
		`{"type":"object","properties":{"status":{"type":"object"}}}`:                                                                                                  true,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"hosts":{"type":"array","items":{"properties":{"port":{"type":"integer"}}}}}}}}`:         true,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"properties":{"b":{"type":"x"}}}}}}}}`: true,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"any":{"type":"object","properties":{"b":{"type":"string"}}}}}}}`:                        false,
	} {
		if got := hasFurtherFields(decode(t, former), decode(t, present)); got != want {
			t.Errorf("hasFurtherFields of %s is %t", present, got)
		}
	}
}

func TestFormerValues(t *testing.T) {
	t.Parallel()
	former := decode(t, `{"properties":{"size":{"type":"integer","maximum":5},"colour":{"type":"string"}},"required":["size"]}`)
	present := decode(t, `{"properties":{"size":{"type":"integer","maximum":3,"description":"new"}}}`)
	for published, want := range map[string]bool{
		`{"properties":{"size":{"type":"integer","maximum":5},"colour":{"type":"string"}},"required":["size"],"x":1}`: true,
		`{"properties":{"size":{"type":"integer","maximum":3,"description":"new"}},"x":1}`:                            false,
		`{"properties":{"size":{"type":"integer","maximum":3,"description":"new"},"colour":{"type":"string"}}}`:       true,
		`{"properties":{"size":{"type":"integer","maximum":3}}}`:                                                      true,
		`{"properties":{"size":{"description":"new"}}}`:                                                               false,
	} {
		if got := hasFormerValue(decode(t, published), former, present); got != want {
			t.Errorf("hasFormerValue of %s is %t", published, got)
		}
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	sample := sampleOf(decode(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{
		"size":{"type":"integer"}, "hosts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}},
		"labels":{"type":"object","additionalProperties":{"type":"string"}}, "empty":{"type":"object"}}}}}`))
	text, err := json.Marshal(sample)
	if want := `{"spec":{"empty":{},"hosts":[{"name":"x"}],"labels":{"x":"x"},"size":"x"}}`; err != nil || string(text) != want {
		t.Errorf("the sample is %s, %v; want %s", text, err, want)
	}
}

func decode(t *testing.T, text string) (schema object) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}
