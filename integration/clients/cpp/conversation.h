// How a library's program talks with the suite; conformance/client_test.go has the verbs.
#pragma once

#include <optional>
#include <string>

// A Library answers each verb with yes or no, or with nothing if it has no means for it.
class Library {
public:
    using Answer = std::optional<bool>;
    using Milliseconds = long long;

    virtual ~Library() = default;
    virtual std::string version() const = 0;
    virtual std::string key(const std::string &name) const { return name; }
    virtual Answer acquire(const std::string &name, Milliseconds ttl) = 0;
    virtual Answer wait(const std::string &, Milliseconds, Milliseconds) { return {}; }
    virtual Answer extend(const std::string &, Milliseconds) { return {}; }
    virtual Answer release(const std::string &name) = 0;
    virtual Answer steal(const std::string &) { return {}; }
    virtual Answer held(const std::string &) { return {}; }
    virtual Answer mine(const std::string &) { return {}; }
};

// Answers until the input ends. Exceptions are answered as errors.
void serve(Library &library);
