package stats

import (
	"math"
	"testing"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{7}, 0.5, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{5, 1, 3}, 0, 1},
		{[]float64{5, 1, 3}, 1, 5},
		{[]float64{10, 20, 30, 40, 50}, 0.9, 46},
	} {
		if got := Quantile(c.values, c.q); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("the %g-quantile of %v is %g, not %g", c.q, c.values, got, c.want)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %g", got)
	}
	values := []float64{3, 1, 2}
	if Median(values); values[0] != 3 {
		t.Error("Median sorted its argument")
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	b := []float64{10, 11, 9, 10.5, 9.5, 10, 10.2, 9.8, 10.1, 9.9}
	half := make([]float64, len(b))
	for i := range b {
		half[i] = b[i] / 2
	}
	// Every round has the same ratio, so that only the pairing of the rounds makes the
	// interval a point.
	ratio, interval := Ratio(half, b)
	if ratio != 0.5 || interval != (Interval{0.5, 0.5}) {
		t.Errorf("half of each round is %g, %v", ratio, interval)
	}
	// Values that are equal but for noise have an interval around 1.
	shifted := append(append([]float64(nil), b[5:]...), b[:5]...)
	ratio, interval = Ratio(shifted, b)
	if ratio != 1 || interval.Low >= 1 || interval.High <= 1 {
		t.Errorf("the same values in other rounds are %g, %v", ratio, interval)
	}
	again, same := Ratio(shifted, b)
	if again != ratio || same != interval {
		t.Errorf("a second call returns %g, %v instead of %g, %v", again, same, ratio, interval)
	}
	if _, interval := Ratio([]float64{1, 2}, []float64{2, 1}); !math.IsNaN(interval.Low) || !math.IsNaN(interval.High) {
		t.Errorf("two rounds have the interval %v", interval)
	}
}

// The bootstrap of the median of normal noise must have about the width that theory gives.
func TestRatioHasTheWidthOfItsNoise(t *testing.T) {
	t.Parallel()
	a, b := make([]float64, 101), make([]float64, 101)
	for i := range a {
		// The quantiles of a uniform distribution from 0.9 to 1.1, in an order without a
		// relation to b, which is constant.
		a[i], b[i] = 0.9+0.2*float64(i*37%101)/100, 1
	}
	_, interval := Ratio(a, b)
	// The standard error of the median is 1 / (2 * density * sqrt(n)), and the density is 5.
	want := 2 * 1.96 / (2 * 5 * math.Sqrt(101))
	if width := interval.High - interval.Low; width < 0.7*want || width > 1.3*want {
		t.Errorf("the interval %v has the width %g, theory says %g", interval, width, want)
	}
}
