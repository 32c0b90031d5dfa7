package faults

import (
	"slices"

	"github.com/yare-go/yare/internal/proxy"
)

// pointKind is a kind of fault that happens at points.
type pointKind interface {
	name() Kind
	// canHappenAt reports whether the fault can happen at a point. code is the HTTP status of the answer in a reference.
	canHappenAt(p proxy.Point, code int) bool
}

// rotate distributes kinds over points: each point gets perPoint of the kinds that can happen at the point, in turn.
// The seed chooses the first kind. A kind that the rotation leaves out gets one point. rest are the other faults that
// can happen, in random order. Example: kinds a to d, three for each point, begin with c. The first point gets c, d and
// a, and the second one b, c and d.
func rotate[K pointKind](in *PlanInput, points []proxy.Point, kinds []K, perPoint int) (chosen, rest []Fault) {
	if len(kinds) == 0 {
		return nil, nil
	}
	rotation := in.Random.IntN(len(kinds))
	isChosen := make(map[Kind]bool)
	for i := range points {
		var possible []K // in the order of the rotation
		for j := range kinds {
			if k := kinds[(rotation+j)%len(kinds)]; k.canHappenAt(points[i], in.Codes[points[i]]) {
				possible = append(possible, k)
			}
		}
		for j, k := range possible {
			f := Fault{Kind: k.name(), At: &points[i]}
			if j >= perPoint {
				rest = append(rest, f)
				continue
			}
			chosen = append(chosen, f)
			isChosen[f.Kind] = true
			rotation = 1 + slices.IndexFunc(kinds, func(other K) bool { return other.name() == f.Kind })
		}
	}
	in.Random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	rest = slices.DeleteFunc(rest, func(f Fault) bool {
		isFirst := !isChosen[f.Kind]
		if isFirst {
			chosen = append(chosen, f)
			isChosen[f.Kind] = true
		}
		return isFirst
	})
	return chosen, rest
}

// newRotatedPlan returns a plan with one run for each chosen fault. The rest follows at once in an exhaustive
// exploration, and otherwise if a budget has time left.
func newRotatedPlan(in *PlanInput, chosen, rest []Fault) Plan {
	if in.IsExhaustive {
		return newPlan(append(chosen, rest...))
	}
	p := newPlan(chosen)
	p.MoreRuns = slices.Collect(slices.Chunk(rest, 1))
	return p
}
