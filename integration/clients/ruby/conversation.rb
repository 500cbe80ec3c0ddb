# How a library's program talks with the suite; conformance/client_test.go has the verbs.

VERBS = %w[version key acquire wait extend release steal held mine].freeze

# Answers with the methods of library until the input ends. Each is called like its verb and returns true for yes, false for
# no, or the answer's own words. A verb without a method is one that the library has no means for.
def serve(library)
  $stdout.sync = true
  $stdin.each_line do |line|
    verb, name, *numbers = line.split
    puts(answer(library, verb, [name, *numbers.map { |number| Integer(number) }].compact))
  rescue StandardError => e
    warn(e.full_message)
    puts("error #{e.class}: #{e.message}".split.join(' '))
  end
end

def answer(library, verb, words)
  return 'unsupported' unless VERBS.include?(verb) && library.class.public_method_defined?(verb, false)

  said = library.public_send(verb, *words)
  { true => 'yes', false => 'no' }.fetch(said, said)
end
