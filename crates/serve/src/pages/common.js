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
    report(wrong ? 'This token is not valid for this server.' : '');
    at('token').focus();
  }

  // What is wrong, as sentences. Below its first line a reason may have a drawing for terminals.
  function firstLine(reason) { return reason.split('\n')[0]; }
  function capital(text) { return text.charAt(0).toUpperCase() + text.slice(1); }
  function sentences(problem) {
    var reasons = (problem.chain || [problem.error]).map(firstLine).join(': ');
    return [reasons, problem.hint].filter(Boolean).map(capital).join('. ');
  }

  // A response that is good; otherwise an error that has what the server answered.
  function request(path, options) {
    var shown = token();
    options = options || {};
    options.headers = Object.assign({ authorization: 'Bearer ' + shown }, options.headers);
    options.credentials = 'omit';
    return fetch(path, options).catch(function () {
      throw new Error('The server cannot be reached.');
    }).then(function (response) {
      if (response.ok) return response;
      return response.json().catch(function () {
        return { error: 'The server responded with status ' + response.status + '.' };
      }).then(function (problem) {
        var error = new Error(sentences(problem));
        error.problem = problem;
        error.status = response.status;
        if (response.status === 401) needToken(shown !== '');
        throw error;
      });
    });
  }

  // Shows a message, or the error of a request; one without the token has been answered by the form.
  function report(message) {
    // The form has said what is wrong with a token.
    if (message instanceof Error && message.status === 401) return;
    say(at('problem'), message instanceof Error ? message.message : message);
  }

  // Puts a text in an element; what stands between backticks is code.
  function say(element, text) {
    var parts = text.split('`');
    if (parts.length % 2 === 0) parts = [text];
    element.replaceChildren.apply(element, parts.map(function (part, place) {
      if (place % 2 === 0) return part;
      var code = document.createElement('code');
      code.textContent = part;
      return code;
    }));
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

  // Links of a report lead to files beside it, in the folder that `within` names if it is that of a run in a result. They need the token,
  // which no link can carry: a page of its own shows a report, other files are fetched. What is not there is no link.
  function linkFiles(element, id, within) {
    var root = '/runs/' + id + '/files', links = [].slice.call(element.querySelectorAll('a[href]')).filter(function (link) {
      return !/^([#/?]|[a-z]+:)/i.test(link.getAttribute('href'));
    });
    if (links.length === 0) return Promise.resolve();
    return request(root + (within ? '?within=' + encodeURIComponent(within) : '')).then(function (response) {
      return response.json();
    }).then(function (found) {
      links.forEach(function (link) {
        var name = (within ? within + '/' : '') + link.getAttribute('href');
        // A run that does not count is named by its folder: its report says why, if there is one.
        if (/\/$/.test(name)) name += 'report.html';
        if (found.files.indexOf(name) < 0) { link.removeAttribute('href'); return; }
        link.setAttribute('href', root + '/' + name.split('/').map(encodeURIComponent).join('/'));
        if (/\.html$/.test(name)) return;
        link.addEventListener('click', function (event) {
          event.preventDefault();
          fetchFile(link.getAttribute('href')).catch(report);
        });
      });
      // A table that is wider than the window is moved with the keyboard by what has the focus in it: without a link, itself.
      element.querySelectorAll('.scroll').forEach(function (region) {
        if (!region.querySelector('a[href],button,[tabindex]')) region.tabIndex = 0;
      });
    });
  }

  // A file as one of the reader's.
  function fetchFile(path) {
    var name = decodeURIComponent(path.split('/').pop());
    return request(path).then(function (response) { return download(response, name); }).then(function () {
      announce(name + ' is saved.');
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

  return { at: at, request: request, report: report, say: say, firstLine: firstLine, announce: announce, drawn: drawn, put: put, download: download, linkFiles: linkFiles, fetchFile: fetchFile, start: start };
})();
