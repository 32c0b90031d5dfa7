// Package peers has tests that run the controllers of operators that others wrote. They run once with the cache and the
// client of controller-runtime, and once with those of package ctrl. Each scenario passes with both.
package peers
