// Results side by side, as the server draws them.
(function () {
  'use strict';
  pubmark.start(function () {
    pubmark.drawn('/compare' + location.search).then(function (text) {
      document.title = pubmark.put(pubmark.at('page'), text) + ' – pubmark';
    }).catch(pubmark.report);
  });
})();
