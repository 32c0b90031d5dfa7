package workload_test

import (
	"encoding/json"
	"testing"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/lab/bench/internal/workload"
)

func TestMachinesHave2To4KB(t *testing.T) {
	t.Parallel()
	for i := range 50 {
		server := fakeserver.New()
		if err := workload.CreateMachine(t.Context(), server.Client(), i); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(server.Objects("machines")[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < 2_000 || len(text) > 4_096 {
			t.Errorf("the Machine %d has %d bytes", i, len(text))
		}
	}
}
