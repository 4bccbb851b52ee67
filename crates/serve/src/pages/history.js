// The runs of one configuration; other conditions and another baseline without leaving the page.
(function () {
  'use strict';
  var at = pubmark.at;

  function load() {
    return pubmark.drawn('/history' + location.search).then(function (text) {
      document.title = pubmark.put(at('page'), text) + ' – pubmark';
      pubmark.report('');
    }).catch(pubmark.report);
  }

  document.addEventListener('submit', function (event) {
    if (event.target.id !== 'gates') return;
    event.preventDefault();
    var wanted = new URLSearchParams(new FormData(event.target));
    ['fail_on', 'baseline'].forEach(function (name) { if (!wanted.get(name)) wanted.delete(name); });
    history.pushState(null, '', '/history?' + wanted.toString());
    load().then(function () { pubmark.announce('The runs were checked again.'); });
  });
  window.addEventListener('popstate', load);
  pubmark.start(load);
})();
