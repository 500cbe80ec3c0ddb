package resp

import (
	"bytes"
	"strconv"
)

// Elements splits one whole aggregate into its elements: an array, set or push, or a
// map as a flat list of keys and values. Elements are slices of raw and keep their
// attributes. Pushes inside are left out. A null array gives nil.
func Elements(raw []byte) ([][]byte, error) {
	of, count, rest, err := aggregateHeader(raw)
	for err == nil && of == '|' {
		if _, rest, err = takeElements(rest, count); err == nil {
			of, count, rest, err = aggregateHeader(rest)
		}
	}
	if err != nil {
		return nil, err
	}
	var list [][]byte
	if count >= 0 {
		list, rest, err = takeElements(rest, count)
	}
	if err == nil && len(rest) > 0 {
		err = errAggregate
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// aggregateHeader reads an aggregate's first line. The count is -1 for a null array.
func aggregateHeader(raw []byte) (of byte, count int64, rest []byte, err error) {
	line, rest, whole := bytes.Cut(raw, crlf)
	if !whole || len(line) == 0 || bytes.IndexByte([]byte("*~%>|"), line[0]) < 0 {
		return 0, 0, nil, errAggregate
	}
	of = line[0]
	count, err = strconv.ParseInt(string(line[1:]), 10, 63) // twice a count is an int64, too
	if err != nil || count < 0 && (count != -1 || of != '*') {
		return 0, 0, nil, errLength
	}
	if of == '%' || of == '|' {
		count *= 2
	}
	return of, count, rest, nil
}

func takeElements(raw []byte, count int64) (list [][]byte, rest []byte, err error) {
	list = make([][]byte, 0, min(count, int64(len(raw)/shortestValue)))
	var s Scanner
	for int64(len(list)) < count {
		n, done, err := s.Scan(raw)
		if err != nil {
			return nil, nil, err
		}
		if !done {
			return nil, nil, errAggregate
		}
		if s.Kind() != '>' {
			list = append(list, raw[:n:n])
		}
		raw = raw[n:]
	}
	return list, raw, nil
}
