package main

import (
	"oss.terrastruct.com/d2/d2target"
	"oss.terrastruct.com/d2/d2themes"
	"oss.terrastruct.com/d2/d2themes/d2themescatalog"
)

// palette is the set of colours for light or for dark pages.
type palette struct {
	// suffix is the end of the names of the pictures, before ".svg".
	suffix string
	// theme is the theme of the diagrams.
	theme d2themes.Theme
	// overrides replace colours of the theme. They may be nil.
	overrides *d2target.ThemeOverrides
	// page is the background of a diagram.
	page string
	// The following fields are the colours of the terminal.
	background, title, border, text, dim, accent, command string
}

// palettes returns the palette for light pages and the palette for dark pages.
func palettes() []palette {
	return []palette{
		{
			suffix: "", theme: d2themescatalog.NeutralDefault, page: "#ffffff",
			background: "#f6f8fa", title: "#eaeef2", border: "#d0d7de", text: "#1f2328", dim: "#59636e", accent: "#0a6c74",
			command: "#0550ae",
		},
		{
			suffix: "-dark", theme: d2themescatalog.DarkMauve, overrides: darkColours(), page: "#0d1117",
			background: "#151b23", title: "#212830", border: "#3d444d", text: "#f0f6fc", dim: "#9198a1", accent: "#56d4dd",
			command: "#79c0ff",
		},
	}
}

// darkColours returns the colours of the diagrams on dark pages.
func darkColours() *d2target.ThemeOverrides {
	text, label, line, page, group, shape, store, object := "#f0f6fc", "#b7bdc8", "#58a6ff", "#0d1117", "#151b23",
		"#1f2a3a", "#2b2440", "#16302f"
	return &d2target.ThemeOverrides{
		N1: &text, N2: &label, N7: &page,
		B1: &line, B2: &line, B3: &shape, B4: &group, B5: &shape, B6: &shape,
		AA2: &line, AA4: &store, AA5: &store, AB4: &object, AB5: &object,
	}
}
