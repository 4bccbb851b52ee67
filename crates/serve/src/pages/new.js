// The form of a new run, experiment, search or choice: judged by the server while it is filled in, started, or taken elsewhere.
(function () {
  'use strict';
  var at = pubmark.at, timer = 0, turn = 0, asked = new AbortController();

  function form() { return at('new'); }

  function kind() { return form().elements.kind.value; }

  // The text that somebody writes: its field, and whether it is the one that counts.
  var editors = { experiment: 'definition', choose: 'requirements' };
  function editor() { return at(editors[kind()] || 'text'); }
  function isText() {
    return kind() === 'choose' || form().elements[kind() === 'experiment' ? 'experiment' : 'workload'].value === '';
  }

  // What the form says, as a submission; a field that is empty or as usual is left out.
  var submissions = {
    run: function (fields) {
      var out = { workload: workload(fields) }, load = {}, target = {};
      copyTexts(fields, out, { system: 'system', endpoint: 'endpoint', protocol: 'protocol', warmup: 'warmup', duration: 'duration',
        slo: 'slo' });
      ['scale', 'rate'].forEach(function (name) {
        // What is no number is sent as it is: the server says what is wrong with it.
        if (fields[name].value !== fields[name].dataset.usual) load[name] = number(fields[name]);
      });
      if (fields.qos.value) load.qos = Number(fields.qos.value);
      if (fields.link.value) load.links = [fields.link.value];
      if (fields.fault.value.trim()) load.faults = words(fields.fault.value);
      if (fields.seed.value.trim()) load.seed = asNumber(fields.seed.value.trim());
      copyTexts(fields, target, { profile: 'profile', limit: 'limit' });
      // A group and its fields at the top exclude each other.
      if (Object.keys(target).length > 0) {
        ['system', 'endpoint'].forEach(function (name) { if (out[name]) target[name] = out[name]; delete out[name]; });
        out.target = target;
      }
      if (Object.keys(load).length > 0) out.load = load;
      if (fields.repetitions.value !== '1') out.repetitions = number(fields.repetitions);
      if (fields.tls.checked) out.tls = true;
      return out;
    },
    experiment: function (fields) {
      var out = { experiment: fields.experiment.value || 'experiment.yaml' };
      if (isText()) out.text = at('definition').value;
      if (fields.quick.checked) out.quick = true;
      if (fields.only.value.trim()) out.only = words(fields.only.value);
      if (fields.repeat.value.trim()) out.repeat = asNumber(fields.repeat.value.trim());
      copyTexts(fields, out, { duration: 'each-duration', warmup: 'each-warmup', wait: 'wait' });
      return out;
    },
    capacity: function (fields) {
      var out = { capacity: workload(fields) };
      copyTexts(fields, out, { system: 'system', endpoint: 'endpoint', protocol: 'protocol', slo: 'objectives', within: 'within', duration: 'trial',
        warmup: 'trial-warmup', profile: 'profile', limit: 'limit' });
      if (fields.vary.value !== 'rate') out.vary = fields.vary.value;
      if (fields.qos.value) out.qos = Number(fields.qos.value);
      if (fields.link.value) out.links = [fields.link.value];
      if (fields.fault.value.trim()) out.faults = words(fields.fault.value);
      if (fields.seed.value.trim()) out.seed = asNumber(fields.seed.value.trim());
      if (fields.tls.checked) out.tls = true;
      return out;
    }
  };

  function workload(fields) { return fields.workload.value || { file_name: 'workload.yaml', text: at('text').value }; }

  // Requirements are sent as they are written, as the value of a key: a line below it, two columns to the right.
  function submission() {
    if (kind() === 'choose') return 'choose:\n' + at('requirements').value.replace(/^/gm, '  ');
    return JSON.stringify(submissions[kind()](form().elements));
  }

  // The place of an error in the text of the form; null if it is elsewhere.
  function placeInText(place) {
    if (!isText() || !place) return null;
    if (kind() === 'choose' && !place.file) return { line: Math.max(place.line - 1, 1), column: Math.max(place.column - 2, 1) };
    return place.file ? place : null;
  }


  function copyTexts(fields, out, names) {
    Object.keys(names).forEach(function (name) {
      var field = fields[names[name]], value = field.value.trim();
      if (value && !field.disabled) out[name] = value;
    });
  }

  function words(text) { return text.trim().split(/\s+/); }

  function asNumber(text) { return Number.isNaN(Number(text)) ? text : Number(text); }

  function number(field) { return field.value === '' ? 'nothing' : Number(field.value); }

  function post(path, body, signal) {
    return pubmark.request(path, { method: 'POST', body: body, signal: signal }).then(function (response) { return response.json(); });
  }

  // The response to an earlier request is about another text: it does not count, and a dry run of it ends.
  function next() {
    asked.abort();
    asked = new AbortController();
    turn += 1;
    return turn;
  }

  function changed() {
    // What runs already is not started.
    form().elements.system.disabled = form().elements.endpoint.value.trim() !== '';
    at('run').disabled = true;
    at('measure').disabled = true;
    next();
    clearTimeout(timer);
    timer = setTimeout(judge, 300);
  }

  // A response counts only while there is no newer request or change.
  function judge() {
    var mine = next(), signal = asked.signal, body = submission();
    post('/validate', body, signal).then(function (found) {
      if (mine !== turn) return;
      good(found);
      post('/dry-run', body, signal).then(function (plan) {
        if (mine === turn) at('plan').textContent = plan.text;
      }).catch(function (error) { if (mine === turn) noPlan(error); });
    }).catch(function (error) {
      if (mine !== turn) return;
      if (error.problem) { wrong(error); } else { pubmark.report(error); }
    });
  }

  function noPlan(error) {
    at('plan').textContent = '—';
    pubmark.report(error);
  }

  function good(found) {
    mark(null, '');
    pubmark.report('');
    at('judgement').className = 'good';
    at('judgement').textContent = 'Valid: it can be started.';
    notes(found.notes);
    // The plan of an earlier text is none of this one.
    at('plan').textContent = '…';
    at('command').textContent = found.command;
    // The text of a run is in its `run.yaml`.
    at('text-file').hidden = kind() === 'run' || !isText();
    at('text-name').textContent = { experiment: 'experiment.yaml', choose: 'requirements.yaml' }[kind()] || 'workload.yaml';
    at('run-yaml').textContent = found.run_yaml || '—';
    at('run').disabled = false;
    at('measure').disabled = false;
  }

  function wrong(error) {
    var place = placeInText(error.problem.place), inText = place !== null;
    // What is wrong at its place; that the text was read is known.
    var reason = pubmark.firstLine(error.problem.chain[error.problem.chain.length - 1]).replace(/^line \d+, column \d+: /, ''), hint = error.problem.hint;
    var words = inText ? 'Line ' + place.line + ', column ' + place.column + ': ' + reason + (hint ? '; ' + hint : '') : '';
    mark(inText ? place.line : null, words);
    at('judgement').className = 'bad';
    pubmark.say(at('judgement'), inText ? 'The text has an error.' : error.message);
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
    var text = editor(), numbers = at(text.id + '-lines'), lines = text.value.split('\n').length, out = [];
    for (var line = 1; line <= lines; line += 1) {
      var mark = document.createElement(line === wrongLine ? 'b' : 'span');
      mark.textContent = line + '\n';
      out.push(mark);
    }
    numbers.replaceChildren.apply(numbers, out);
    numbers.scrollTop = text.scrollTop;
    text.setAttribute('aria-invalid', wrongLine !== null);
    pubmark.say(at(text.id + '-problem'), message);
  }

  // Shows what belongs to the kind that is chosen, and the text where it counts.
  function choose(event) {
    form().querySelectorAll('[data-for]').forEach(function (part) {
      part.hidden = part.dataset.for.split(' ').indexOf(kind()) < 0;
    });
    var text = editor();
    text.closest('.own').hidden = !isText();
    // Whoever empties a text does not want the example again.
    if (isText() && text.value === '' && !(event && event.target === text)) text.value = text.dataset.example;
  }

  function measure() {
    var mine = next();
    at('measure').disabled = true;
    at('plan').textContent = 'Measuring this machine for two seconds…';
    post('/dry-run?machine=true', submission(), asked.signal).then(function (plan) {
      if (mine === turn) at('plan').textContent = plan.text;
    }).catch(function (error) {
      if (mine === turn) noPlan(error);
    }).then(function () { if (mine === turn) at('measure').disabled = false; });
  }

  // A refusal enables the button only for the form that was refused: a changed one has to be valid first. A plan or a measurement
  // that is under way is still about this form, so this takes no turn.
  function start() {
    var sent = submission();
    at('run').disabled = true;
    post('/runs', sent).then(function (entry) {
      location.href = '/runs/' + entry.id;
    }).catch(function (error) {
      if (submission() === sent) at('run').disabled = false;
      pubmark.report(error);
    });
  }

  function copy(button) {
    navigator.clipboard.writeText(at(button.dataset.copy).textContent).then(function () {
      pubmark.announce('Copied.');
      button.textContent = 'Copied';
      setTimeout(function () { button.textContent = 'Copy'; }, 1500);
    }).catch(function () {
      // A page that is not encrypted may not write there from another machine: the text is selected instead.
      getSelection().selectAllChildren(at(button.dataset.copy));
      pubmark.announce('Selected: press Ctrl+C to copy.');
    });
  }

  pubmark.start(function () {
    pubmark.drawn('/new').then(function (text) {
      pubmark.put(at('view'), text);
      form().addEventListener('input', changed);
      form().addEventListener('change', function (event) {
        choose(event);
        // What chooses for somebody, such as a driver or an aid, may tell of a choice by this event alone. A text tells of its end so: the
        // button that is pressed next stays as it is.
        if (event.target.tagName === 'SELECT') changed();
      });
      ['text', 'definition', 'requirements'].forEach(function (name) {
        at(name).addEventListener('scroll', function () { at(name + '-lines').scrollTop = at(name).scrollTop; });
      });
      choose();
      at('measure').addEventListener('click', measure);
      form().addEventListener('submit', function (event) { event.preventDefault(); start(); });
      form().addEventListener('click', function (event) { if (event.target.dataset.copy) copy(event.target); });
      judge();
    }).catch(pubmark.report);
  });
})();
