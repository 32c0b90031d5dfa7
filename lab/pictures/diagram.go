package main

import (
	"context"
	"log/slog"

	"oss.terrastruct.com/d2/d2graph"
	"oss.terrastruct.com/d2/d2layouts/d2elklayout"
	"oss.terrastruct.com/d2/d2lib"
	"oss.terrastruct.com/d2/d2renderers/d2svg"
	"oss.terrastruct.com/d2/lib/log"
	"oss.terrastruct.com/d2/lib/textmeasure"
)

// renderDiagram returns the pictures of a diagram in the language of D2, one for each palette. A picture contains the
// letters of its fonts.
func renderDiagram(ctx context.Context, source string, all []palette) ([][]byte, error) {
	ruler, err := textmeasure.NewRuler()
	if err != nil {
		return nil, err
	}
	layout := func(string) (d2graph.LayoutGraph, error) {
		return func(ctx context.Context, g *d2graph.Graph) error {
			return d2elklayout.Layout(ctx, g, &d2elklayout.ConfigurableOpts{
				Algorithm: "layered", NodeSpacing: 40, Padding: "[top=50,left=30,bottom=30,right=30]", EdgeNodeSpacing: 30,
				SelfLoopSpacing: 50,
			})
		}, nil
	}
	ctx = log.With(ctx, slog.New(slog.DiscardHandler))
	diagram, _, err := d2lib.Compile(ctx, source, &d2lib.CompileOptions{Ruler: ruler, LayoutResolver: layout},
		&d2svg.RenderOpts{})
	if err != nil {
		return nil, err
	}
	var pictures [][]byte
	for _, p := range all {
		padding, scale, withoutXMLTag := int64(12), 1.0, true
		diagram.Root.Fill = p.page
		picture, err := d2svg.Render(diagram, &d2svg.RenderOpts{
			Scale: &scale, Pad: &padding, ThemeID: &p.theme.ID, ThemeOverrides: p.overrides, NoXMLTag: &withoutXMLTag,
		})
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, picture)
	}
	return pictures, nil
}
