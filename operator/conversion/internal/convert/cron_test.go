package convert

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube"
)

// The kind of this file is that of the CronJob example: version 1 has the schedule as a text, and version 2 as five fields.

type (
	cron1Spec struct {
		Schedule string                 `json:"schedule" crd:"pattern=^(@|[0-9*p])"`
		Suspend  *bool                  `json:"suspend,omitempty"`
		Policy   string                 `json:"policy,omitempty" crd:"enum=Allow|Forbid"`
		Template corev1.PodTemplateSpec `json:"template"`
		Ports    []cronPort1            `json:"ports,omitempty" crd:"listType=map,listMapKey=name"`
		Limits   map[string]int64       `json:"limits,omitempty"`
		Notes    map[string]cronNote    `json:"notes,omitempty"`
	}
	cronPort1 struct {
		Name   string `json:"name"`
		Port   int32  `json:"port"`
		Public bool   `json:"public,omitempty"`
	}
	cronNote struct {
		Text   string `json:"text,omitempty"`
		Author string `json:"author,omitempty"`
	}
	cron2Spec struct {
		Schedule cronFields             `json:"schedule"`
		Suspend  bool                   `json:"suspend"`
		Zone     string                 `json:"zone,omitempty"`
		Template corev1.PodTemplateSpec `json:"template"`
		Ports    []cronPort2            `json:"ports,omitempty" crd:"listType=map,listMapKey=name"`
		Notes    map[string]string      `json:"notes,omitempty"`
	}
	cronFields struct {
		Minute     string `json:"minute"`
		Hour       string `json:"hour"`
		DayOfMonth string `json:"dayOfMonth"`
		Month      string `json:"month"`
		DayOfWeek  string `json:"dayOfWeek"`
	}
	cronPort2 struct {
		Name   string `json:"name"`
		Number int32  `json:"number"`
	}
	cronStatus struct {
		Active int64 `json:"active,omitempty"`
	}
	cron1 = kube.CustomResource[cron1Spec, cronStatus]
	cron2 = kube.CustomResource[cron2Spec, cronStatus]
)

func (cron1Spec) Definition() kube.Definition {
	return kube.Definition{Group: "batch.example.com", Version: "v1", Kind: "CronJob", Storage: true}
}

func (cron2Spec) Definition() kube.Definition {
	return kube.Definition{Group: "batch.example.com", Version: "v2", Kind: "CronJob"}
}

// cronToV2 panics if the schedule is "panic".
func cronToV2(a *cron1, b *cron2) {
	schedule := map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *"}[a.Spec.Schedule]
	if schedule == "" {
		schedule = a.Spec.Schedule
	}
	if schedule == "panic" {
		panic("a password")
	}
	fields := append(strings.Fields(schedule), "", "", "", "", "")
	b.Spec.Schedule = cronFields{fields[0], fields[1], fields[2], fields[3], fields[4]}
	b.Spec.Suspend = a.Spec.Suspend != nil && *a.Spec.Suspend
	b.Spec.Template = a.Spec.Template
	for _, p := range a.Spec.Ports {
		if !p.Public {
			b.Spec.Ports = append(b.Spec.Ports, cronPort2{p.Name, p.Port})
		}
	}
	for name, note := range a.Spec.Notes {
		if b.Spec.Notes == nil {
			b.Spec.Notes = make(map[string]string)
		}
		b.Spec.Notes[name] = note.Text
	}
	b.Status = a.Status
}

// cronToV1 panics if the minute is "panic".
func cronToV1(b *cron2, a *cron1) {
	f := b.Spec.Schedule
	if f.Minute == "panic" {
		panic("a password")
	}
	a.Spec.Schedule = strings.Join([]string{f.Minute, f.Hour, f.DayOfMonth, f.Month, f.DayOfWeek}, " ")
	if b.Spec.Suspend {
		a.Spec.Suspend = &b.Spec.Suspend
	}
	a.Spec.Template = b.Spec.Template
	for _, p := range b.Spec.Ports {
		a.Spec.Ports = append(a.Spec.Ports, cronPort1{Name: p.Name, Port: p.Number})
	}
	for name, text := range b.Spec.Notes {
		if a.Spec.Notes == nil {
			a.Spec.Notes = make(map[string]cronNote)
		}
		a.Spec.Notes[name] = cronNote{Text: text}
	}
	a.Status = b.Status
}
