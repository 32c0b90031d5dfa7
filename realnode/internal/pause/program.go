// Package pause makes the image of the sandbox of Pods. Its only program does nothing: it keeps the
// namespaces of a Pod alive.
package pause

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	// loadAddress is where the program is in memory.
	loadAddress = 0x400000
	// headerSize is the size of an ELF header and one program header.
	headerSize = 64 + 56
)

// The machine types of ELF files.
const (
	machineAMD64 = 62
	machineARM64 = 183
)

// The program, for each architecture. It ignores SIGCHLD, so that the kernel removes ended children
// (where containers of a Pod share a process namespace, this program is the parent of orphans), and
// then waits for ever. Behind the instructions is the argument of rt_sigaction: the handler SIG_IGN
// (1), no flags, no restorer, an empty mask.

func codeAMD64() []byte {
	return append([]byte{
		0xb8, 0x0d, 0x00, 0x00, 0x00, // mov eax, 13 (rt_sigaction)
		0xbf, 0x11, 0x00, 0x00, 0x00, // mov edi, 17 (SIGCHLD)
		0x48, 0x8d, 0x35, 0x13, 0x00, 0x00, 0x00, // lea rsi, [rip+19] (behind the last instruction)
		0x31, 0xd2, // xor edx, edx
		0x41, 0xba, 0x08, 0x00, 0x00, 0x00, // mov r10d, 8 (the size of the mask)
		0x0f, 0x05, // syscall
		0xb8, 0x22, 0x00, 0x00, 0x00, // wait: mov eax, 34 (pause)
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp wait
	}, ignoreAction()...)
}

func codeARM64() []byte {
	var code []byte
	for _, instruction := range []uint32{
		0xd28010c8, // mov x8, #134 (rt_sigaction)
		0xd2800220, // mov x0, #17 (SIGCHLD)
		0x10000181, // adr x1, 48 bytes from here (behind the last instruction)
		0xd2800002, // mov x2, #0
		0xd2800103, // mov x3, #8 (the size of the mask)
		0xd4000001, // svc #0
		0xd2800000, // wait: mov x0, #0
		0xd2800001, // mov x1, #0
		0xd2800002, // mov x2, #0
		0xd2800003, // mov x3, #0
		0xd2800004, // mov x4, #0
		0xd2800928, // mov x8, #73 (ppoll of no files, without a timeout)
		0xd4000001, // svc #0
		0x17fffff9, // b wait
	} {
		code = binary.LittleEndian.AppendUint32(code, instruction)
	}
	return append(code, ignoreAction()...)
}

// ignoreAction returns the kernel's structure sigaction that ignores a signal.
func ignoreAction() []byte {
	action := make([]byte, 32)
	action[0] = 1
	return action
}

// program returns the executable file for an architecture of Go.
func program(architecture string) ([]byte, error) {
	switch architecture {
	case "amd64":
		return elfFile(machineAMD64, codeAMD64()), nil
	case "arm64":
		return elfFile(machineARM64, codeARM64()), nil
	}
	return nil, fmt.Errorf("there is no pause program for %s: a real node needs amd64 or arm64", architecture)
}

// elfFile returns a statically linked executable file with this code.
func elfFile(machine uint16, code []byte) []byte {
	size := uint64(headerSize + len(code))
	var file bytes.Buffer
	file.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}) // 64 bits, little endian
	for _, field := range []any{
		uint16(2), machine, uint32(1), // an executable file
		uint64(loadAddress + headerSize), // the entry
		uint64(64), uint64(0), uint32(0), // the program header follows this header; no sections
		uint16(64), uint16(56), uint16(1), // the sizes of the headers; one program header
		uint16(0), uint16(0), uint16(0),

		uint32(1), uint32(5), // a segment to load, to read and execute
		uint64(0), uint64(loadAddress), uint64(loadAddress), // all of the file
		size, size,
		uint64(0x10000), // aligned to the largest page
	} {
		// A write into memory does not fail.
		_ = binary.Write(&file, binary.LittleEndian, field)
	}
	file.Write(code)
	return file.Bytes()
}
