// The commands of redis-plus-plus 1.3.15, given to hiredis, which that library is built on and which Debian has. LIBRARY is
// RedMutex, which runs scripts, or RedMutexTx, which watches the key in transactions.
#include "conversation.h"

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <hiredis/hiredis.h>

using Words = std::vector<std::string>;
using Reply = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;

class Connection {
public:
    explicit Connection(int port) : _context(redisConnect("127.0.0.1", port), redisFree) {
        if (!_context || _context->err) throw std::runtime_error(_context ? _context->errstr : "out of memory");
    }

    Reply run(const Words &command) {
        send(command);
        return receive();
    }

    // What is sent goes out in one write when a reply is wanted.
    void send(const Words &command) {
        std::vector<const char *> starts;
        std::vector<size_t> lengths;
        for (const auto &word : command) {
            starts.push_back(word.data());
            lengths.push_back(word.size());
        }
        redisAppendCommandArgv(_context.get(), static_cast<int>(command.size()), starts.data(), lengths.data());
    }

    Reply receive() {
        void *reply = nullptr;
        if (redisGetReply(_context.get(), &reply) != REDIS_OK) throw std::runtime_error(_context->errstr);
        Reply owned(static_cast<redisReply *>(reply), freeReplyObject);
        if (owned->type == REDIS_REPLY_ERROR) throw std::runtime_error(owned->str);
        return owned;
    }

private:
    std::unique_ptr<redisContext, decltype(&redisFree)> _context;
};

static std::string token() {
    static std::mt19937 random{std::random_device{}()};
    static const std::string letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string made;
    for (int i = 0; i != 20; ++i) made.push_back(letters[random() % letters.size()]);
    return made;
}

class Mutex : public Library {
public:
    explicit Mutex(int port) : _port(port), _connection(port) {}

    std::string version() const override { return "1.3.15"; }

    Answer acquire(const std::string &name, Milliseconds ttl) override {
        const auto value = token();
        const auto reply = _connection.run({"SET", name, value, "PX", std::to_string(ttl), "NX"});
        if (reply->type != REDIS_REPLY_STATUS) {
            after_refusal(name, value);
            return false;
        }
        _values[name] = value;
        return true;
    }

    // RedMutex::lock() tries again and again, up to five milliseconds apart.
    Answer wait(const std::string &name, Milliseconds ttl, Milliseconds limit) override {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit);
        std::mt19937 random{std::random_device{}()};
        do {
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 6));
            if (*acquire(name, ttl)) return true;
        } while (std::chrono::steady_clock::now() < deadline);
        return false;
    }

    Answer extend(const std::string &name, Milliseconds ttl) override { return prolong(name, _values[name], ttl); }

    Answer release(const std::string &name) override {
        const auto value = _values[name];
        _values.erase(name);
        return remove(name, value);
    }

    Answer steal(const std::string &name) override { return remove(name, token()); }

protected:
    virtual bool prolong(const std::string &name, const std::string &value, Milliseconds ttl) = 0;
    virtual bool remove(const std::string &name, const std::string &value) = 0;
    virtual void after_refusal(const std::string &name, const std::string &value) = 0;

    int _port;
    Connection _connection;

private:
    std::map<std::string, std::string> _values;
};

class RedMutex : public Mutex {
public:
    using Mutex::Mutex;

protected:
    bool prolong(const std::string &name, const std::string &value, Milliseconds ttl) override {
        static const std::string script =
            "if redis.call(\"GET\",KEYS[1]) == ARGV[1] then return redis.call(\"pexpire\",KEYS[1],ARGV[2]) else return 0 end";
        return _connection.run({"EVAL", script, "1", name, value, std::to_string(ttl)})->integer == 1;
    }

    bool remove(const std::string &name, const std::string &value) override {
        static const std::string script =
            "if redis.call(\"GET\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end";
        return _connection.run({"EVAL", script, "1", name, value})->integer == 1;
    }

    void after_refusal(const std::string &name, const std::string &value) override { remove(name, value); }
};

// Each transaction has a connection of its own, which is closed behind it.
class RedMutexTx : public Mutex {
public:
    using Mutex::Mutex;

protected:
    bool prolong(const std::string &name, const std::string &value, Milliseconds ttl) override {
        return if_it_is(name, value, {"PEXPIRE", name, std::to_string(ttl)});
    }

    bool remove(const std::string &name, const std::string &value) override { return if_it_is(name, value, {"DEL", name}); }

    // The name stands where the value should, so that nothing is ever removed.
    void after_refusal(const std::string &name, const std::string &) override { remove(name, name); }

private:
    bool if_it_is(const std::string &name, const std::string &value, const Words &command) {
        Connection connection(_port);
        connection.run({"WATCH", name});
        const auto found = connection.run({"GET", name});
        if (found->type != REDIS_REPLY_STRING || std::string(found->str, found->len) != value) return false;
        for (const auto &each : {Words{"MULTI"}, command, Words{"EXEC"}}) connection.send(each);
        connection.receive();
        connection.receive();
        const auto results = connection.receive();
        return results->type == REDIS_REPLY_ARRAY && results->elements == 1 && results->element[0]->integer == 1;
    }
};

int main(int, char **arguments) {
    const int port = std::stoi(arguments[1]);
    std::unique_ptr<Mutex> mutex;
    if (std::string(arguments[2]) == "RedMutexTx") {
        mutex = std::make_unique<RedMutexTx>(port);
    } else {
        mutex = std::make_unique<RedMutex>(port);
    }
    serve(*mutex);
}
