<?php
// How a library's program talks with the suite; conformance/client_test.go has the verbs.

ini_set('display_errors', 'stderr');

// The file of the authority's certificate, and the password, if the suite wants TLS.
define('TLS_CA', getenv('REDIS_TLS_CA') ?: null);
define('PASSWORD', getenv('REDIS_PASSWORD') ?: null);

/**
 * Answers with the methods of $library until the input ends. Each is called like its verb and returns true for yes, false
 * for no, or the answer's own words. A verb without a method is one that the library has no means for.
 */
function serve(object $library): void
{
    while (($line = fgets(STDIN)) !== false) {
        $words = explode(' ', rtrim($line));
        $verb = array_shift($words);
        try {
            $answer = method_exists($library, $verb) ? $library->$verb(...$words) : 'unsupported';
        } catch (Throwable $error) {
            fwrite(STDERR, "$error\n");
            $answer = 'error ' . preg_replace('/\s+/', ' ', get_class($error) . ': ' . $error->getMessage());
        }
        echo is_bool($answer) ? ($answer ? 'yes' : 'no') : $answer, "\n";
        flush();
    }
}

/** The version of the library that a Debian package holds, for those that do not know their own. */
function packagedVersion(string $package): string
{
    $version = rtrim((string) shell_exec('dpkg-query --show --showformat=\'${Version}\' ' . escapeshellarg($package)));
    return preg_replace('/[+-].*/', '', $version);
}
