// The list of results: searched, sorted and turned over without leaving the page; compared, exported, noted, deleted.
(function () {
  'use strict';
  var at = pubmark.at, view = at('view'), queue = at('queue'), search = at('search');
  // The queue as the server has it, and as the page shows it; whether the list is older than the queue; the number of checks.
  var timer = 0, seenQueue = '', drawnQueue = '', isOld = false, isSilent = false, checks = 0;

  function load() {
    var wanted = location.search;
    isOld = false;
    search.elements.filter.value = new URLSearchParams(wanted).get('filter') || '';
    return pubmark.drawn('/' + wanted).then(function (text) {
      // Another search may have begun meanwhile.
      if (wanted !== location.search) return;
      pubmark.put(view, text);
      pubmark.report('');
      select();
    }).catch(function (error) {
      // What the server refuses stays refused.
      isOld = isOld || !error.problem;
      pubmark.report(error);
    });
  }

  function go(address) {
    history.pushState(null, '', address);
    return load().then(function () { pubmark.announce((view.querySelector('.total') || {}).textContent || ''); });
  }

  // A button in the queue keeps the focus: what changed is drawn when the focus has left.
  function drawQueue() {
    if (drawnQueue === seenQueue || queue.contains(document.activeElement)) return;
    drawnQueue = seenQueue;
    pubmark.put(queue, seenQueue);
  }

  // The queue changes by itself, and what ended is a result. A selection and an open dialog keep the list as it is.
  function follow() {
    clearTimeout(timer);
    // A page that nobody sees asks for nothing.
    if (document.hidden) return Promise.resolve();
    return pubmark.drawn('/queue').then(function (text) {
      if (isSilent) { isSilent = false; load(); }
      if (text !== seenQueue) {
        isOld = isOld || seenQueue !== '';
        seenQueue = text;
      }
      drawQueue();
      if (isOld && selected().length === 0 && !document.querySelector('dialog[open]')) load();
      timer = setTimeout(follow, 2000);
    }).catch(function (error) {
      pubmark.report(error);
      isSilent = !error.problem;
      if (error.status !== 401) timer = setTimeout(follow, 5000);
    });
  }

  function selected() {
    return [].slice.call(view.querySelectorAll('input[name=run]:checked')).map(function (box) { return box.value; });
  }

  function query(names) {
    return names.map(function (name) { return 'run=' + encodeURIComponent(name); }).join('&');
  }

  // What can be done with so many results.
  function select() {
    var names = selected();
    var reasons = [];
    view.querySelectorAll('[data-needs]').forEach(function (button) {
      var needs = button.dataset.needs.split('-').map(Number), of = button.dataset.of;
      var wrong = of && view.querySelector('input[name=run]:checked:not([data-kind="' + of + '"])');
      button.disabled = names.length < needs[0] || names.length > needs[1] || !!wrong;
      if (wrong && of === 'run') reasons.push(button.textContent.toLowerCase());
    });
    var count = view.querySelector('#selected'), text = names.length === 0 ? 'Nothing selected' : names.length + ' selected';
    if (reasons.length > 0) text += ': ' + reasons.join(' and ') + ' are for single runs';
    if (count) count.textContent = text;
  }

  function bytes(number) {
    var units = ['B', 'kB', 'MB', 'GB'], place = 0;
    while (number >= 1000 && place < 3) { number /= 1000; place += 1; }
    return (place === 0 ? number : number.toPrecision(3)) + ' ' + units[place];
  }

  function inOrder(list, work) {
    return list.reduce(function (before, one) { return before.then(function () { return work(one); }); }, Promise.resolve());
  }

  // Says first what goes, by name and size.
  function confirmDeletion(names) {
    var lines = at('going');
    lines.replaceChildren();
    return inOrder(names, function (name) {
      return pubmark.request('/runs/' + encodeURIComponent(name) + '/results').then(function (response) {
        return response.json();
      }).then(function (results) {
        var texts = results.folders.map(function (one) {
          return one.folder + ': ' + one.files + (one.files === 1 ? ' file, ' : ' files, ') + bytes(one.bytes);
        });
        if (texts.length === 0) texts = [name + ': no results, the entry in the list'];
        texts.forEach(function (text) {
          var line = document.createElement('li');
          line.textContent = text;
          lines.append(line);
        });
      });
    }).then(function () {
      at('delete').dataset.names = JSON.stringify(names);
      at('delete').showModal();
    }).catch(pubmark.report);
  }

  at('delete').addEventListener('close', function () {
    if (at('delete').returnValue !== 'yes') return;
    at('delete').returnValue = '';
    var names = JSON.parse(at('delete').dataset.names), gone = 0;
    inOrder(names, function (name) {
      return pubmark.request('/runs/' + encodeURIComponent(name) + '/results', { method: 'DELETE' })
        .then(function () { gone += 1; });
    }).then(load).then(function () {
      pubmark.announce(gone + (gone === 1 ? ' result deleted' : ' results deleted'));
    }).catch(function (error) { load().then(function () { pubmark.report(error); }); });
  });

  at('note').addEventListener('close', function () {
    var dialog = at('note'), form = dialog.querySelector('form');
    if (dialog.returnValue !== 'yes') return;
    dialog.returnValue = '';
    var note = { text: form.elements.text.value, tags: form.elements.tags.value.split(/[\s,]+/).filter(Boolean) };
    pubmark.request('/runs/' + encodeURIComponent(dialog.dataset.name) + '/note', {
      method: 'PUT', body: JSON.stringify(note)
    }).then(load).then(function () { pubmark.announce('The note is saved.'); }).catch(pubmark.report);
  });

  function editNote(button) {
    var dialog = at('note'), form = dialog.querySelector('form');
    dialog.dataset.name = button.dataset.note;
    dialog.querySelector('.of').textContent = button.dataset.note;
    form.elements.text.value = button.dataset.text;
    form.elements.tags.value = button.dataset.tags;
    dialog.showModal();
  }

  // Two experiments, cell by cell; the newer one stands above in a list by time.
  function checkThem(names) {
    var dialog = at('check');
    // Names of submissions and folders begin with their time.
    dialog.dataset.names = JSON.stringify(names.slice().sort());
    dialog.querySelector('.of').textContent = names.slice().sort().reverse().join(' against ');
    dialog.showModal();
    return judge();
  }

  // How many checks came out how: `2 passed, 1 not measured`.
  function counted(checks) {
    var counts = {};
    checks.forEach(function (check) { counts[check.outcome] = (counts[check.outcome] || 0) + 1; });
    return Object.keys(counts).map(function (outcome) { return counts[outcome] + ' ' + outcome.replace('-', ' '); }).join(', ');
  }

  function judge() {
    // Only the response to the newest check counts.
    var mine = ++checks, names = JSON.parse(at('check').dataset.names), finding = at('check-finding');
    finding.textContent = 'Checking…';
    at('check-rows').replaceChildren();
    return pubmark.request('/check', { method: 'POST', body: JSON.stringify({
      run: names[1], baseline: names[0], fail_on: at('check-fail-on').value
    }) }).then(function (response) { return response.json(); }).then(function (found) {
      if (mine !== checks) return;
      finding.textContent = (found.passed ? 'Passed: ' : found.undecided ? 'Undecided: ' : 'Failed: ') + counted(found.checks);
      at('check-rows').replaceChildren.apply(at('check-rows'), found.checks.map(function (check) {
        var row = document.createElement('tr');
        [check.cell || '—', check.name, check.outcome.replace('-', ' '), check.detail].forEach(function (text) {
          var cell = document.createElement('td');
          cell.textContent = text;
          row.append(cell);
        });
        return row;
      }));
    }).catch(function (error) { if (mine === checks) pubmark.say(finding, error.message); });
  }

  at('check-again').addEventListener('click', judge);
  at('check-fail-on').addEventListener('keydown', function (event) {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    judge();
  });

  var actions = {
    check: checkThem,
    compare: function (names) { location.href = '/compare?' + query(names); },
    history: function (names) { location.href = '/history?' + query(names); },
    export: function (names) {
      pubmark.announce('The export begins.');
      return pubmark.request('/export?' + query(names))
        .then(function (response) { return pubmark.download(response, 'pubmark-results.tar.gz'); })
        .then(function () { pubmark.announce('The export is complete.'); })
        .catch(pubmark.report);
    },
    delete: confirmDeletion
  };

  document.addEventListener('click', function (event) {
    var target = event.target.closest('a[data-stay],button');
    if (!target) return;
    if (target.dataset.stay !== undefined) {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      var again = target.id;
      go(target.getAttribute('href')).then(function () { if (again && at(again)) at(again).focus(); });
    } else if (target.dataset.cancel) {
      if (!confirm('Cancel ' + target.dataset.what + '? Everything measured so far is saved.')) return;
      target.disabled = true;
      pubmark.request('/runs/' + target.dataset.cancel, { method: 'DELETE' }).then(function () {
        target.blur();
        return follow();
      }).catch(function (error) { target.disabled = false; pubmark.report(error); });
    } else if (target.dataset.note) {
      editNote(target);
    } else if (target.dataset.action) {
      actions[target.dataset.action](selected());
    }
  });
  view.addEventListener('change', function (event) {
    if (event.target.name === 'run') select();
  });
  search.addEventListener('submit', function (event) {
    event.preventDefault();
    var wanted = new URLSearchParams(location.search);
    wanted.delete('offset');
    wanted.set('filter', search.elements.filter.value.trim());
    if (!wanted.get('filter')) wanted.delete('filter');
    var text = wanted.toString();
    go(text ? '/?' + text : '/');
  });
  window.addEventListener('popstate', load);
  document.addEventListener('visibilitychange', function () {
    if (!document.hidden && !at('page').hidden) follow();
  });
  pubmark.start(function () { load(); follow(); });
})();
