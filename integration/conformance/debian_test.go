package conformance

import "testing"

// TestTableOfAnotherDebian: only the versions of Debian's packages may differ from the README's.
func TestTableOfAnotherDebian(t *testing.T) {
	t.Parallel()
	all := allLibraries(t)
	const readme = "| library | versions | over Valkey | lock rule | scenarios passed |\n" +
		"| Symfony Lock, over phpredis | 5.4.53 | 5.4.53 | `lock:*` | 10 of 10 |\n" +
		"| redis-py | 3.5.3, 8.1.0 | 8.1.0 | `lock:*` | 10 of 10 |\n"
	for got, same := range map[string]bool{
		readme: true,
		"| library | versions | over Valkey | lock rule | scenarios passed |\n" +
			"| Symfony Lock, over phpredis | 7.2.0 | 7.2.0 | `lock:*` | 10 of 10 |\n" +
			"| redis-py | 3.5.3, 8.1.0 | 8.1.0 | `lock:*` | 10 of 10 |\n": true,
		"| library | versions | over Valkey | lock rule | scenarios passed |\n" +
			"| Symfony Lock, over phpredis | 5.4.53 | 5.4.53 | `lock:*` | 9 of 10 |\n" +
			"| redis-py | 3.5.3, 8.1.0 | 8.1.0 | `lock:*` | 10 of 10 |\n": false,
		"| library | versions | over Valkey | lock rule | scenarios passed |\n" +
			"| Symfony Lock, over phpredis | 5.4.53 | 5.4.53 | `lock:*` | 10 of 10 |\n" +
			"| redis-py | 3.5.3, 8.2.0 | 8.2.0 | `lock:*` | 10 of 10 |\n": false,
	} {
		if is := withoutDebians(all, got) == withoutDebians(all, readme); is != same {
			t.Errorf("the same: %v, want %v:\n%s", is, same, got)
		}
	}
}
