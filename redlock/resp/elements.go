package resp

import "bytes"

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
	if len(raw) == 0 || bytes.IndexByte([]byte("*~%>|"), raw[0]) < 0 {
		return 0, 0, nil, errAggregate
	}
	var s Scanner
	_ = s.startValue(raw[0])
	for i, b := range raw[1:] {
		if s.state == scanLengthLF {
			if b != '\n' {
				return 0, 0, nil, errLength
			}
			if _, err := s.endLength(0); err != nil {
				return 0, 0, nil, err
			}
			if s.minus {
				s.length = -1
			}
			return s.of, s.length, raw[i+2:], nil
		}
		if err := s.lengthByte(b); err != nil {
			return 0, 0, nil, err
		}
	}
	return 0, 0, nil, errAggregate
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
