package admission

import "github.com/yare-go/yare/internal/jsonscan"

// eachMember calls f for the members of a well-formed JSON value, in their order. It calls f for no member of a value
// that is no object.
func eachMember(object []byte, f func(name string, value []byte)) {
	s := jsonscan.New(object)
	_ = s.Members(func(name []byte) error { // the value is well formed
		value, err := s.Raw()
		f(string(name), value)
		return err
	})
}

// memberOf returns the value of a member, or nil if there is none.
func memberOf(object []byte, name string) []byte {
	s := jsonscan.New(object)
	if found, err := s.Find(name); err != nil || !found {
		return nil
	}
	value, _ := s.Raw() // the value is well formed
	return value
}

// textOf returns the string that value is, or an empty string.
func textOf(value []byte) string {
	s := jsonscan.New(value)
	text, _ := s.Text() // nil for another value
	return string(text)
}

// objectOf returns value if it is an object, and else nil.
func objectOf(value []byte) []byte {
	if len(value) > 0 && value[0] == '{' {
		return value
	}
	return nil
}
