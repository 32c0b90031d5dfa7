package kube

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func deploymentFixture(b *testing.B) []byte {
	for _, file := range fixtures(b) {
		if filepath.Base(file) == "apps.v1.Deployment.json" {
			data, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			return data
		}
	}
	b.Fatal("there is no fixture of a Deployment")
	return nil
}

// BenchmarkDecodeDeployment decodes a Deployment with every field set.
func BenchmarkDecodeDeployment(b *testing.B) {
	data := deploymentFixture(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var d appsv1.Deployment
		if err := Unmarshal(data, &d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApplyBody(b *testing.B) {
	var d appsv1.Deployment
	if err := Unmarshal(deploymentFixture(b), &d); err != nil {
		b.Fatal(err)
	}
	typ, err := TypeOfObject(&d)
	if err != nil {
		b.Fatal(err)
	}
	p := newPruner()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.applyBody(&d, typ.Resource, true); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode decodes objects as a reconcile does.
func BenchmarkDecode(b *testing.B) {
	data := deploymentFixture(b)
	decoder := newDecoder()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var d appsv1.Deployment
		if err := decoder.decode(data, &d); err != nil {
			b.Fatal(err)
		}
	}
}
