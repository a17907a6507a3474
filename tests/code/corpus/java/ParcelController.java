package org.example.desk;

import java.net.URI;
import java.util.List;
import java.util.Optional;

import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.*;

/** Takes parcels and hands them out. */
@RestController
@RequestMapping("/parcels")
public class ParcelController {

    private static final int LIMIT = 100;
    private final ParcelService service;

    public ParcelController(ParcelService service) {
        this.service = service;
    }

    @GetMapping
    public List<ParcelDto> list(@RequestParam(defaultValue = "20") int limit) {
        return service.newest(Math.min(limit, LIMIT)).stream()
            .map(parcel -> new ParcelDto(parcel.id(), parcel.street()))
            .toList();
    }

    @GetMapping("/{id}")
    public ResponseEntity<ParcelDto> one(@PathVariable long id) {
        Optional<Parcel> found = service.find(id);
        if (found.isEmpty()) {
            return ResponseEntity.notFound().build();
        }
        Parcel parcel = found.get();
        return ResponseEntity.ok(new ParcelDto(parcel.id(), parcel.street()));
    }

    @PostMapping(consumes = {"application/json"})
    @ResponseStatus(HttpStatus.CREATED)
    public ResponseEntity<Void> add(@RequestBody ParcelDto parcel) {
        long id = service.add(parcel.street());
        return ResponseEntity.created(URI.create("/parcels/" + id)).build();
    }

    public record ParcelDto(long id, String street) {}
}
