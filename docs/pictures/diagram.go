package main

import (
	"context"
	"log/slog"

	"oss.terrastruct.com/d2/d2graph"
	"oss.terrastruct.com/d2/d2layouts/d2dagrelayout"
	"oss.terrastruct.com/d2/d2lib"
	"oss.terrastruct.com/d2/d2renderers/d2svg"
	"oss.terrastruct.com/d2/lib/log"
	"oss.terrastruct.com/d2/lib/textmeasure"
)

// renderDiagram returns the picture of a diagram in the language of D2. The picture contains the letters of its fonts.
func renderDiagram(ctx context.Context, source string, p palette) ([]byte, error) {
	ruler, err := textmeasure.NewRuler()
	if err != nil {
		return nil, err
	}
	layout := func(string) (d2graph.LayoutGraph, error) {
		return func(ctx context.Context, g *d2graph.Graph) error {
			return d2dagrelayout.Layout(ctx, g, &d2dagrelayout.ConfigurableOpts{NodeSep: 40, EdgeSep: 20})
		}, nil
	}
	padding, withoutXMLTag := int64(16), true
	options := &d2svg.RenderOpts{Pad: &padding, ThemeID: &p.theme.ID, NoXMLTag: &withoutXMLTag}
	ctx = log.With(ctx, slog.New(slog.DiscardHandler))
	diagram, _, err := d2lib.Compile(ctx, source, &d2lib.CompileOptions{Ruler: ruler, LayoutResolver: layout}, options)
	if err != nil {
		return nil, err
	}
	diagram.Root.Fill = p.page
	return d2svg.Render(diagram, options)
}
