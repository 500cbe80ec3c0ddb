#include "conversation.h"

#include <algorithm>
#include <exception>
#include <iostream>
#include <sstream>

static std::string words(Library::Answer answer) {
    return answer ? (*answer ? "yes" : "no") : "unsupported";
}

static std::string answer(Library &library, const std::string &line) {
    std::istringstream in(line);
    std::string verb, name;
    Library::Milliseconds ttl = 0, limit = 0;
    in >> verb >> name >> ttl >> limit;
    if (verb == "version") return library.version();
    if (verb == "key") return library.key(name);
    if (verb == "acquire") return words(library.acquire(name, ttl));
    if (verb == "wait") return words(library.wait(name, ttl, limit));
    if (verb == "extend") return words(library.extend(name, ttl));
    if (verb == "release") return words(library.release(name));
    if (verb == "steal") return words(library.steal(name));
    if (verb == "held") return words(library.held(name));
    if (verb == "mine") return words(library.mine(name));
    return "unsupported";
}

void serve(Library &library) {
    for (std::string line; std::getline(std::cin, line);) {
        std::string said;
        try {
            said = answer(library, line);
        } catch (const std::exception &error) {
            said = std::string("error ") + error.what();
            std::replace(said.begin(), said.end(), '\n', ' ');
        }
        std::cout << said << std::endl;
    }
}
