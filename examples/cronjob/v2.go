package main

import (
	"cmp"
	"strings"

	"github.com/yare-go/yare/kube"
)

// CronJobSpecV2 is the desired state of the cron job. Its schedule has a field for each part.
type CronJobSpecV2 struct {
	// When Jobs start. It is empty for a schedule that v1 alone can express, such as "@hourly".
	Schedule Schedule `json:"schedule"`
	Settings
}

// Schedule is a schedule in cron format. A field that is not set matches always.
type Schedule struct {
	// The minutes, such as "0,30".
	Minute string `json:"minute,omitempty" crd:"pattern='^[^ @]+$'"`
	// The hours.
	Hour string `json:"hour,omitempty" crd:"pattern='^[^ @]+$'"`
	// The days of the month.
	DayOfMonth string `json:"dayOfMonth,omitempty" crd:"pattern='^[^ @]+$'"`
	// The months.
	Month string `json:"month,omitempty" crd:"pattern='^[^ @]+$'"`
	// The days of the week.
	DayOfWeek string `json:"dayOfWeek,omitempty" crd:"pattern='^[^ @]+$'"`
}

// Definition returns the definition of CronJobs of v2.
func (CronJobSpecV2) Definition() kube.Definition { return definition("v2") }

// CronJobV2 is a CronJob of v2.
type CronJobV2 = kube.CustomResource[CronJobSpecV2, CronJobStatus]

func toV2(c *CronJob, v2 *CronJobV2) {
	v2.Spec.Settings, v2.Status = c.Spec.Settings, c.Status
	if f := strings.Fields(c.Spec.Schedule); len(f) == 5 {
		v2.Spec.Schedule = Schedule{f[0], f[1], f[2], f[3], f[4]}
	}
}

func toV1(v2 *CronJobV2, c *CronJob) {
	c.Spec.Settings, c.Status = v2.Spec.Settings, v2.Status
	s := v2.Spec.Schedule
	fields := []string{s.Minute, s.Hour, s.DayOfMonth, s.Month, s.DayOfWeek}
	for i := range fields {
		fields[i] = cmp.Or(fields[i], "*")
	}
	c.Spec.Schedule = strings.Join(fields, " ")
}
