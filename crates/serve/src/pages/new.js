// The form of a new run: judged by the server while it is filled in, started, or taken elsewhere.
(function () {
  'use strict';
  var at = pubmark.at, timer = 0, turn = 0;

  function form() { return at('new'); }

  // What the form says, as a submission; a field that is empty or as usual is left out.
  function submission() {
    var fields = form().elements, out = {};
    out.workload = fields.workload.value || { file_name: 'workload.yaml', text: at('text').value };
    ['system', 'protocol', 'warmup', 'duration', 'slo'].forEach(function (name) {
      if (fields[name].value.trim()) out[name] = fields[name].value.trim();
    });
    var load = {};
    ['scale', 'rate'].forEach(function (name) {
      // What is no number is sent as it is: the server says what is wrong with it.
      if (fields[name].value !== fields[name].dataset.usual) load[name] = number(fields[name]);
    });
    if (fields.qos.value) load.qos = Number(fields.qos.value);
    if (fields.link.value) load.links = [fields.link.value];
    if (fields.fault.value.trim()) load.faults = fields.fault.value.trim().split(/\s+/);
    if (Object.keys(load).length > 0) out.load = load;
    if (fields.repetitions.value !== '1') out.repetitions = number(fields.repetitions);
    if (fields.tls.checked) out.tls = true;
    return JSON.stringify(out);
  }

  function number(field) { return field.value === '' ? 'nothing' : Number(field.value); }

  function post(path, body) {
    return pubmark.request(path, { method: 'POST', body: body }).then(function (response) { return response.json(); });
  }

  function changed() {
    at('run').disabled = true;
    at('measure').disabled = true;
    clearTimeout(timer);
    timer = setTimeout(judge, 300);
  }

  // A response counts only while there is no newer request.
  function judge() {
    var mine = ++turn, body = submission();
    post('/validate', body).then(function (found) {
      if (mine !== turn) return;
      good(found);
      post('/dry-run', body).then(function (plan) {
        if (mine === turn) at('plan').textContent = plan.text;
      }).catch(pubmark.report);
    }).catch(function (error) {
      if (mine !== turn) return;
      if (error.problem) { wrong(error); } else { pubmark.report(error); }
    });
  }

  function good(found) {
    mark(null, '');
    pubmark.report('');
    at('judgement').className = 'good';
    at('judgement').textContent = 'It can be run.';
    notes(found.notes);
    at('command').textContent = found.command;
    at('run-yaml').textContent = found.run_yaml;
    at('run').disabled = false;
    at('measure').disabled = false;
  }

  function wrong(error) {
    var place = error.problem.place, isText = !form().elements.workload.value && place && place.file;
    // What is wrong at its place; that the text was read is known.
    var reason = error.problem.chain[error.problem.chain.length - 1], hint = error.problem.hint;
    var words = isText ? 'Line ' + place.line + ', column ' + place.column + ': ' + reason + (hint ? '; ' + hint : '') : '';
    mark(isText ? place.line : null, words);
    at('judgement').className = 'bad';
    at('judgement').textContent = isText ? 'The text of the workload cannot be used.' : error.message;
    notes([]);
    ['plan', 'command', 'run-yaml'].forEach(function (name) { at(name).textContent = '—'; });
  }

  function notes(list) {
    at('notes').replaceChildren.apply(at('notes'), list.map(function (text) {
      var line = document.createElement('li');
      line.textContent = text;
      return line;
    }));
  }

  // Numbers of the lines, the one with the error marked.
  function mark(wrongLine, message) {
    var lines = at('text').value.split('\n').length, out = [];
    for (var line = 1; line <= lines; line += 1) {
      var mark = document.createElement(line === wrongLine ? 'b' : 'span');
      mark.textContent = line + '\n';
      out.push(mark);
    }
    at('lines').replaceChildren.apply(at('lines'), out);
    at('lines').scrollTop = at('text').scrollTop;
    at('text').setAttribute('aria-invalid', wrongLine !== null);
    at('text-problem').textContent = message;
  }

  function chooseText() {
    var isOwn = form().elements.workload.value === '';
    form().querySelector('.own').hidden = !isOwn;
    if (isOwn && at('text').value === '') at('text').value = at('text').dataset.example;
  }

  function measure() {
    var mine = ++turn;
    at('measure').disabled = true;
    at('plan').textContent = 'Measuring this machine for two seconds…';
    post('/dry-run?machine=true', submission()).then(function (plan) {
      if (mine === turn) at('plan').textContent = plan.text;
    }).catch(function (error) {
      if (mine !== turn) return;
      at('plan').textContent = '—';
      pubmark.report(error);
    }).then(function () { if (mine === turn) at('measure').disabled = false; });
  }

  function start() {
    at('run').disabled = true;
    post('/runs', submission()).then(function (entry) {
      location.href = '/runs/' + entry.id;
    }).catch(function (error) { at('run').disabled = false; pubmark.report(error); });
  }

  function copy(button) {
    navigator.clipboard.writeText(at(button.dataset.copy).textContent).then(function () {
      pubmark.announce('Copied.');
      button.textContent = 'Copied';
      setTimeout(function () { button.textContent = 'Copy'; }, 1500);
    }).catch(function () {
      // A page that is not encrypted may not write there from another machine: the text is selected instead.
      getSelection().selectAllChildren(at(button.dataset.copy));
      pubmark.announce('Selected: copy it with the keyboard.');
    });
  }

  pubmark.start(function () {
    pubmark.drawn('/new').then(function (text) {
      pubmark.put(at('view'), text);
      form().addEventListener('input', changed);
      form().elements.workload.addEventListener('change', chooseText);
      at('text').addEventListener('scroll', function () { at('lines').scrollTop = at('text').scrollTop; });
      at('measure').addEventListener('click', measure);
      form().addEventListener('submit', function (event) { event.preventDefault(); start(); });
      form().addEventListener('click', function (event) { if (event.target.dataset.copy) copy(event.target); });
      judge();
    }).catch(pubmark.report);
  });
})();
