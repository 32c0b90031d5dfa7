package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A run that was cut off, even within a line, goes on with what is complete.
func TestResultsOfARunThatWasCutOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.jsonl")
	first, err := openResults(path)
	if err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= 2; round++ {
		if err := first.add(result{Row: "shops", Program: yare, Round: round, Objects: 10, Figures: figures{"cpu": 1}}); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := openResults(path)
	if err != nil {
		t.Fatal(err)
	}
	if !second.has("shops", yare, 1, 10) || second.has("shops", yare, 2, 10) {
		t.Errorf("of two rounds, the second cut off, these are kept: %+v", second.all)
	}
	if second.has("shops", yare, 1, 11) || second.has("pods", yare, 1, 10) || second.has("shops", kubeRS, 1, 10) {
		t.Error("rounds are kept that were not measured")
	}
	if err := second.add(result{Row: "shops", Program: yare, Round: 2, Objects: 10}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("the file is %q, %v", text, err)
	}
}

func TestLatencies(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	writes := []write{
		{sent: at, answered: at.Add(4 * time.Millisecond), version: 7},
		{sent: at.Add(time.Second), answered: at.Add(time.Second + 4*time.Millisecond), version: 8},
	}
	records := [][3]int64{
		{1, 8, at.Add(time.Second + 3*time.Millisecond).UnixNano()},
		{0, 7, at.Add(5 * time.Millisecond).UnixNano()},
	}
	f := make(figures)
	if err := addLatencies(f, writes, records); err != nil {
		t.Fatal(err)
	}
	// One reconcile came a millisecond before the answer, and one came a millisecond after it.
	if p50 := f["p50"]; p50 < -1e-9 || p50 > 1e-9 {
		t.Errorf("p50 is %g", p50)
	}
	if p50 := f["sentP50"]; p50 < 0.0039 || p50 > 0.0041 {
		t.Errorf("the p50 from the sending is %g", p50)
	}
	records[0][1] = 9
	if err := addLatencies(f, writes, records); err == nil {
		t.Error("a reconcile of another version is no error")
	}
}
