// A file of a result: the report of a run in it as a page; anything else is saved.
(function () {
  'use strict';
  var at = pubmark.at, path = location.pathname, id = path.split('/')[2];
  var name = path.split('/').slice(4).map(decodeURIComponent).join('/');

  function show() {
    return pubmark.drawn(path).then(function (text) {
      document.title = pubmark.put(at('page'), text) + ' – pubmark';
      var link = document.createElement('a');
      link.href = '/runs/' + id;
      link.textContent = 'Whole result';
      document.querySelector('nav.pages').append(link);
      return pubmark.linkFiles(at('page'), id, name.split('/').slice(0, -1).join('/'));
    });
  }

  pubmark.start(function () {
    var work = /\.html$/.test(name) ? show() : pubmark.fetchFile(path).then(function () {
      at('title').textContent = name.split('/').pop() + ' is saved';
    });
    work.catch(pubmark.report);
  });
})();
