// How a library's program talks with the suite; conformance/client_test.go has the verbs.
'use strict';

const fs = require('fs');
const readline = require('readline');

// The certificate of the authority and the password, if the suite wants TLS.
const { REDIS_TLS_CA, REDIS_PASSWORD } = process.env;
const tls = REDIS_TLS_CA && { password: REDIS_PASSWORD, ca: fs.readFileSync(REDIS_TLS_CA) };

// serve answers each line of the input with the library's method of that name until the input ends. A method returns true
// for yes, false for no, or the answer's own words; a verb without a method is one that the library has no means for.
async function serve(library) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.split(' ');
    let answer = 'unsupported';
    try {
      if (library[verb]) {
        answer = await library[verb](...words.map((word) => (/^\d+$/.test(word) ? Number(word) : word)));
      }
    } catch (error) {
      console.error(error);
      answer = `error ${error}`.replace(/\s+/g, ' ');
    }
    console.log({ true: 'yes', false: 'no' }[answer] || answer);
  }
}

module.exports = { serve, tls };
