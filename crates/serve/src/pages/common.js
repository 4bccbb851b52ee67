// What all pages of the server share: the token, requests, messages, and content that the server draws.
var pubmark = (function () {
  'use strict';
  var at = function (id) { return document.getElementById(id); };
  var begin = function () {};

  // A command prints an address with its token behind the `#`, which a browser sends nowhere.
  if (/^#[0-9a-f]{64}$/.test(location.hash)) {
    sessionStorage.setItem('pubmark-token', location.hash.slice(1));
    history.replaceState(null, '', location.pathname + location.search);
  }

  function token() { return sessionStorage.getItem('pubmark-token') || ''; }

  function needToken(wrong) {
    sessionStorage.removeItem('pubmark-token');
    at('login').hidden = false;
    at('page').hidden = true;
    report(wrong ? 'The server does not know this token.' : '');
    at('token').focus();
  }

  // A response that is good; otherwise an error that has what the server answered.
  function request(path, options) {
    var shown = token();
    options = options || {};
    options.headers = Object.assign({ authorization: 'Bearer ' + shown }, options.headers);
    options.credentials = 'omit';
    return fetch(path, options).catch(function () {
      throw new Error('The server does not answer.');
    }).then(function (response) {
      if (response.ok) return response;
      return response.json().catch(function () {
        return { error: 'The server answered ' + response.status + '.' };
      }).then(function (problem) {
        var error = new Error(problem.hint ? problem.error + '. ' + problem.hint : problem.error);
        error.problem = problem;
        error.status = response.status;
        if (response.status === 401) needToken(shown !== '');
        throw error;
      });
    });
  }

  // Shows a message, or the error of a request; one without the token has been answered by the form.
  function report(message) {
    if (message instanceof Error) message = message.status === 401 ? at('problem').textContent : message.message;
    at('problem').textContent = message;
  }

  function announce(text) { at('announced').textContent = text; }

  function drawn(path, options) {
    options = options || {};
    options.headers = Object.assign({ accept: 'text/html' }, options.headers);
    return request(path, options).then(function (response) { return response.text(); });
  }

  // Puts what the server drew in place of what an element holds. A script is one that the policy of the page names.
  function put(element, text) {
    var page = new DOMParser().parseFromString(text, 'text/html');
    element.replaceChildren.apply(element, [].slice.call(page.body.childNodes));
    element.querySelectorAll('script').forEach(function (inert) {
      var script = document.createElement('script');
      script.textContent = inert.textContent;
      inert.replaceWith(script);
    });
    return page.title;
  }

  // What a response holds, as a file of the reader's.
  function download(response, name) {
    return response.blob().then(function (blob) {
      var anchor = document.createElement('a');
      anchor.href = URL.createObjectURL(blob);
      anchor.download = name;
      anchor.click();
      setTimeout(function () { URL.revokeObjectURL(anchor.href); }, 10000);
    });
  }

  // Begins now, or when the token is there.
  function start(how) {
    begin = how;
    if (token()) { open(); } else { needToken(false); }
  }

  function open() {
    at('login').hidden = true;
    at('page').hidden = false;
    report('');
    begin();
  }

  at('login').addEventListener('submit', function (event) {
    event.preventDefault();
    sessionStorage.setItem('pubmark-token', at('token').value.trim());
    at('token').value = '';
    open();
  });

  return { at: at, request: request, report: report, announce: announce, drawn: drawn, put: put, download: download, start: start };
})();
