package main

import (
	"strings"
	"unicode/utf8"
)

// style is the look of a cell of a terminal.
type style int

const (
	plain style = iota
	// dim is faint or grey text.
	dim
	// accent is text of any other colour.
	accent
)

// cell is one character of a terminal.
type cell struct {
	char  rune
	style style
}

// screen is the part of a terminal that programs such as a shell, yare and kubectl use: lines that grow, wrap, scroll,
// and are written anew after a carriage return.
type screen struct {
	columns int
	rows    [][]cell
	// row and column are the place of the cursor.
	row, column int
	style       style
	// rest is the begin of an escape sequence or of a character that has not been written whole.
	rest string
}

func newScreen(rows, columns int) *screen {
	return &screen{columns: columns, rows: make([][]cell, rows)}
}

// write writes the output of a program.
func (s *screen) write(text string) {
	text, s.rest = s.rest+text, ""
	for text != "" {
		if text[0] == '\x1b' {
			n := escapeLength(text)
			if n == 0 {
				s.rest = text
				return
			}
			s.escape(text[:n])
			text = text[n:]
			continue
		}
		if !utf8.FullRuneInString(text) {
			s.rest = text
			return
		}
		char, n := utf8.DecodeRuneInString(text)
		s.put(char)
		text = text[n:]
	}
}

// escapeLength returns the length of the escape sequence at the begin of text, or 0 if the sequence is not complete.
// Example: the sequence of "\x1b[36myare" has 5 bytes.
func escapeLength(text string) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] != '[' {
		return 2
	}
	for i := 2; i < len(text); i++ {
		if text[i] >= '@' && text[i] <= '~' {
			return i + 1
		}
	}
	return 0
}

// escape handles the sequences for colours and for the removal of the rest of a line. It ignores all others.
func (s *screen) escape(sequence string) {
	parameters := strings.TrimPrefix(sequence[:len(sequence)-1], "\x1b[")
	switch sequence[len(sequence)-1] {
	case 'm':
		switch parameters {
		case "", "0", "39", "22":
			s.style = plain
		case "2", "90":
			s.style = dim
		default:
			s.style = accent
		}
	case 'K':
		s.rows[s.row] = s.rows[s.row][:min(s.column, len(s.rows[s.row]))]
	}
}

// put writes one character, or moves the cursor.
func (s *screen) put(char rune) {
	switch {
	case char == '\r':
		s.column = 0
	case char == '\n':
		s.newLine()
	case char == '\b':
		s.column = max(0, s.column-1)
	case char == '\t':
		for next := s.column/8*8 + 8; s.column < next; {
			s.put(' ')
		}
	case char < ' ':
	default:
		if s.column >= s.columns {
			s.column = 0
			s.newLine()
		}
		line := s.rows[s.row]
		for len(line) <= s.column {
			line = append(line, cell{char: ' '})
		}
		line[s.column] = cell{char, s.style}
		s.rows[s.row] = line
		s.column++
	}
}

// newLine moves the cursor one line down. At the lower end it scrolls.
func (s *screen) newLine() {
	if s.row+1 < len(s.rows) {
		s.row++
		return
	}
	s.rows = append(s.rows[1:len(s.rows):len(s.rows)], nil)
}

// lines returns the lines of the screen.
func (s *screen) lines() []line {
	lines := make([]line, len(s.rows))
	for i, row := range s.rows {
		lines[i] = lineOf(row)
	}
	return lines
}

// line is a line of a terminal as text in which a byte before each part has the style of the part: 'p', 'd' or 'a'.
// Parts end with a zero byte. Lines can be compared.
type line string

func lineOf(row []cell) line {
	for len(row) > 0 && row[len(row)-1].char == ' ' {
		row = row[:len(row)-1]
	}
	var b strings.Builder
	for i := 0; i < len(row); {
		current := row[i].style
		b.WriteByte("pda"[current])
		for ; i < len(row) && row[i].style == current; i++ {
			b.WriteRune(row[i].char)
		}
		b.WriteByte(0)
	}
	return line(b.String())
}
