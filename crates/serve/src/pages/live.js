// Follows a run: takes what the server draws once a second, and becomes the report at the end.
(function () {
  'use strict';
  var at = pubmark.at, id = location.pathname.split('/')[2] || '';
  var view = at('view'), stop = at('stop'), announced = '', failure = '';
  // The request under way, the next attempt, and whether there is nothing more to ask for. A command that shows its own run ends
  // when its pages have the report, so a page of it asks although nobody sees it.
  var asked = null, timer = 0, isOver = false, isServed = document.querySelector('nav.pages') !== null;

  // Only what changed its kind is read out: a phase, a fault, the end.
  function announce(text) {
    if (text && text !== announced) { announced = text; pubmark.announce(text); }
  }

  function becomeReport() {
    return pubmark.drawn('/runs/' + id + '/report').then(function (text) {
      document.title = pubmark.put(at('page'), text) + ' – pubmark';
      // The report may be that of an earlier repetition, and says nothing of what failed after it.
      pubmark.report(failure);
      var pages = document.querySelector('nav.pages');
      // A command that shows its own run waits until this page has the report, and ends.
      // Files beside the report are in the folder of the run, which nobody hands out then.
      if (!pages) at('page').querySelectorAll('a[href]').forEach(function (link) {
        if (link.getAttribute('href').charAt(0) !== '#') link.removeAttribute('href');
      });
      if (!pages) return pubmark.request('/runs/' + id + '/seen', { method: 'POST' }).catch(function () {});
      pubmark.linkFiles(at('page'), id).catch(pubmark.report);
      // Only single runs have a history.
      var kind = at('page').querySelector('.kind');
      if (!kind || kind.textContent !== 'pubmark run') return;
      var link = document.createElement('a');
      link.href = '/history?run=' + encodeURIComponent(id);
      link.textContent = 'History of this configuration';
      pages.append(link);
    });
  }

  // Drawing replaces every element: the focus goes to the same link, by which whoever uses a keyboard goes on.
  function draw(html) {
    var focused = document.activeElement, href = view.contains(focused) ? focused.getAttribute('href') : null;
    view.innerHTML = html;
    var same = [].slice.call(view.querySelectorAll('a[href]')).filter(function (link) { return link.getAttribute('href') === href; })[0];
    if (same) same.focus({ preventScroll: true });
  }

  // Somebody selects a text, to copy it.
  function isSelecting() {
    var selection = getSelection();
    return selection.type === 'Range' && selection.containsNode(view, true);
  }

  function show(message) {
    at('title').textContent = message.title;
    document.title = message.title + ' – pubmark';
    // Nothing is drawn after the end.
    if (message.ended || !isSelecting()) draw(message.html);
    at('actions').hidden = !message.can_stop;
    announce(message.announce);
    failure = message.failure || '';
  }

  // Server-sent events, read by hand: an EventSource cannot send the token.
  function follow() {
    clearTimeout(timer);
    if (isServed && document.hidden) return null;
    var mine = new AbortController();
    asked = mine;
    isOver = false;
    return pubmark.request('/runs/' + id + '/live', { signal: mine.signal }).then(function (response) {
      pubmark.report('');
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
      isOver = over !== false;
      if (over) return becomeReport();
      if (over === false && asked === mine) timer = setTimeout(follow, 1000);
      return null;
    }).catch(function (error) {
      // The page was paused; it may follow again since. What failed may also be the request for the report.
      if (asked !== mine && !isOver) return;
      pubmark.report(error);
      // The server refused it for a reason that will not go away.
      isOver = Boolean(error.problem);
      if (isOver) return;
      pubmark.report('The server cannot be reached. Retrying…');
      timer = setTimeout(follow, 2000);
    });
  }

  // A page that nobody sees, or that is closed, asks for nothing.
  function pause() {
    clearTimeout(timer);
    if (asked) asked.abort();
    asked = null;
  }

  function resume() {
    if (!asked && !isOver && !at('page').hidden) follow();
  }

  document.addEventListener('visibilitychange', function () {
    if (!isServed) return;
    if (document.hidden) pause(); else resume();
  });
  window.addEventListener('pagehide', pause);
  window.addEventListener('pageshow', function (event) { if (event.persisted) resume(); });

  stop.addEventListener('click', function () {
    if (!confirm('Stop this run? Everything measured so far is saved.')) return;
    stop.disabled = true;
    pubmark.request('/runs/' + id, { method: 'DELETE' }).then(function () {
      announce('Stopping the run.');
    }).catch(function (error) { stop.disabled = false; pubmark.report(error); });
  });
  pubmark.start(follow);
})();
