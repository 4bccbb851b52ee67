// Follows a run: asks for the token, takes what the server draws once a second, and becomes the report at the end.
(function () {
  'use strict';
  var id = location.pathname.split('/')[2] || '';
  var at = function (name) { return document.getElementById(name); };
  var login = at('login'), view = at('view'), stop = at('stop');
  var announced = '';

  function token() { return sessionStorage.getItem('pubmark-token') || ''; }

  function ask(path, options) {
    options = options || {};
    options.headers = { authorization: 'Bearer ' + token() };
    options.credentials = 'omit';
    return fetch(path, options);
  }

  function say(problem) { at('problem').textContent = problem; }

  // Only what changed its kind is read out: a phase, a fault, the end.
  function announce(text) {
    if (text && text !== announced) { announced = text; at('announced').textContent = text; }
  }

  function needToken(wrong) {
    sessionStorage.removeItem('pubmark-token');
    login.hidden = false;
    at('actions').hidden = true;
    say(wrong ? 'The server does not know this token.' : '');
    at('token').focus();
  }

  function becomeReport() {
    return ask('/runs/' + id + '/report').then(function (response) {
      if (!response.ok) {
        return response.json().then(function (problem) { say(problem.error); });
      }
      return response.text().then(function (text) {
        document.open();
        document.write(text);
        document.close();
        document.addEventListener('click', download);
      });
    });
  }

  // Links of a report lead to files beside it; they need the token, which no link can carry.
  function download(event) {
    var link = event.target.closest && event.target.closest('a[href$=".csv"]');
    if (!link) return;
    event.preventDefault();
    var name = link.getAttribute('href').split('/').pop();
    ask('/runs/' + id + '/table?table=' + encodeURIComponent(name.replace(/\.csv$/, ''))).then(function (response) {
      return response.blob();
    }).then(function (blob) {
      var anchor = document.createElement('a');
      anchor.href = URL.createObjectURL(blob);
      anchor.download = name;
      anchor.click();
      setTimeout(function () { URL.revokeObjectURL(anchor.href); }, 1000);
    });
  }

  function show(message) {
    at('title').textContent = message.title;
    document.title = message.title + ' – pubmark';
    view.innerHTML = message.html;
    at('actions').hidden = !message.can_stop;
    announce(message.announce);
  }

  // Server-sent events, read by hand: an EventSource cannot send the token.
  function follow() {
    return ask('/runs/' + id + '/live').then(function (response) {
      if (response.status === 401) { needToken(token() !== ''); return null; }
      if (!response.ok) {
        return response.json().then(function (problem) { say(problem.error); return null; });
      }
      login.hidden = true;
      say('');
      var reader = response.body.getReader(), decoder = new TextDecoder(), rest = '', over = false, ended = false;
      function next() {
        return reader.read().then(function (piece) {
          if (piece.done) return ended && !over ? null : over;
          rest += decoder.decode(piece.value, { stream: true });
          var events = rest.split('\n\n');
          rest = events.pop();
          events.forEach(function (event) {
            event.split('\n').forEach(function (line) {
              if (line.slice(0, 6) !== 'data: ') return;
              var message = JSON.parse(line.slice(6));
              show(message);
              over = over || message.over;
              ended = ended || message.ended;
            });
          });
          return next();
        });
      }
      return next();
    }).then(function (over) {
      if (over === null) return;
      if (over) return becomeReport();
      setTimeout(follow, 1000);
    }).catch(function () {
      say('The server does not answer; trying again.');
      setTimeout(follow, 2000);
    });
  }

  login.addEventListener('submit', function (event) {
    event.preventDefault();
    sessionStorage.setItem('pubmark-token', at('token').value.trim());
    at('token').value = '';
    follow();
  });
  stop.addEventListener('click', function () {
    if (!confirm('Stop the run? What was measured until now is kept.')) return;
    stop.disabled = true;
    ask('/runs/' + id, { method: 'DELETE' }).then(function (response) {
      if (!response.ok) { stop.disabled = false; return response.json().then(function (problem) { say(problem.error); }); }
      announce('The run ends.');
    });
  });
  if (token()) { follow(); } else { needToken(false); }
})();
